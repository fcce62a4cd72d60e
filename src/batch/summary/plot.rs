//! Stacked bars as inline SVG.
//!
//! Owns the drawing. Knows nothing of launches: it is given names and numbers.

use std::fmt::Write;

use super::html::escape;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 180.0;
/// Room for the names under the bars.
const FOOT: f64 = 22.0;
/// Room that the name of a bar takes, of ten characters at most.
const NAME: f64 = 62.0;

/// Colours that are told apart by most eyes; what has no colour of its own is grey.
const COLORS: [&str; 8] = [
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#994f00", "#006cd1",
];
const OTHER: &str = "#999999";

/// One bar: its name and a number for each of the kinds.
pub struct Bar {
    /// Shown below.
    pub name: String,
    /// One for each kind.
    pub parts: Vec<u64>,
}

/// Bars side by side, each a stack of the kinds, with a legend.
pub fn stacked(kinds: &[String], bars: &[Bar]) -> String {
    let color = |n: usize| COLORS.get(n).copied().unwrap_or(OTHER);
    let highest = bars
        .iter()
        .map(|bar| bar.parts.iter().sum::<u64>())
        .max()
        .unwrap_or(0)
        .max(1);
    let step = WIDTH / bars.len().max(1) as f64;
    // Names would overlap when there are many bars, and that of a last one would be cut off.
    let named = bars.len().div_ceil(10).max(1);
    let mut out = format!("<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\">", HEIGHT + FOOT);
    for (n, bar) in bars.iter().enumerate() {
        let x = n as f64 * step;
        let mut y = HEIGHT;
        for (kind, part) in bar.parts.iter().enumerate().filter(|(_, part)| **part > 0) {
            let tall = *part as f64 / highest as f64 * (HEIGHT - 8.0);
            y -= tall;
            let _ = write!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{tall:.1}\" fill=\"{}\"><title>{}: {} {part}</title></rect>",
                (step - 2.0).clamp(1.0, 60.0),
                color(kind),
                escape(&bar.name),
                escape(kinds.get(kind).map_or("", String::as_str)),
            );
        }
        if n % named == 0 && x + NAME <= WIDTH {
            let _ = write!(
                out,
                "<text x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                HEIGHT + FOOT - 6.0,
                escape(&bar.name)
            );
        }
    }
    let _ = write!(out, "</svg>\n<p class=\"legend\">highest bar: {highest}");
    for (n, kind) in kinds.iter().enumerate() {
        let _ = write!(
            out,
            " <span><i style=\"background:{}\"></i>{}</span>",
            color(n),
            escape(kind)
        );
    }
    out.push_str("</p>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_neither_overlap_nor_leave_the_plot() {
        for n in [1, 9, 10, 11, 19, 20, 21, 520] {
            let name = |n| format!("2026-w-{n:03}");
            let bars = (0..n).map(|n| Bar {
                name: name(n),
                parts: vec![1],
            });
            let plot = stacked(&["gpu-oom".to_owned()], &bars.collect::<Vec<_>>());
            let starts: Vec<f64> = plot
                .split("<text x=\"")
                .skip(1)
                .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
                .collect();
            assert!(!starts.is_empty(), "{n}");
            assert!(starts.windows(2).all(|two| two[1] - two[0] >= NAME), "{n}: {starts:?}");
            assert!(starts.iter().all(|x| x + NAME <= WIDTH), "{n}: {starts:?}");
        }
    }
}
