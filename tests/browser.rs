//! The HTML report in a real browser, at the width of a desk and of a phone. Skips, saying so, where there is none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assert_cmd::cargo::CommandCargoExt;

const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome", "chrome"];

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|folder| BROWSERS.iter().map(move |name| folder.join(name)))
        .find(|file| file.is_file())
}

/// The page's document after its scripts ran.
fn dom(browser: &Path, page: &Path, width: u32, profile: &Path) -> Option<String> {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.contains("</html>").then_some(text)
}

#[test]
fn the_page_works_under_its_own_policy_and_fits_its_window() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no browser ({}) is installed", BROWSERS.join(", "));
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("report.html");
    let status = Command::cargo_bin("coroner")
        .unwrap()
        .arg("--format")
        .arg(format!("html={}", page.display()))
        .arg("corpus/flagship-c-graph-capture-oom.log")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
    let Some(shown) = dom(&browser, &page, 1280, dir.path()) else {
        eprintln!("skipped: {} cannot show a page here", browser.display());
        return;
    };
    assert!(shown.contains("class=\"copy\""), "there are buttons");
    assert!(
        !shown.contains("hidden=\"\""),
        "the script showed the buttons, so the policy lets it run"
    );

    // Measured on a copy that allows one more script.
    let source = fs::read_to_string(&page).unwrap();
    let (before, rest) = source.split_once("<meta http-equiv=").unwrap();
    let (_, after) = rest.split_once('>').unwrap();
    let measure = "<script>document.title = \
                   `over ${document.documentElement.scrollWidth - document.documentElement.clientWidth}`</script>";
    let open = dir.path().join("measured.html");
    fs::write(
        &open,
        format!("{before}{}", after.replace("</body>", &format!("{measure}</body>"))),
    )
    .unwrap();
    for width in [1280, 500] {
        let shown = dom(&browser, &open, width, dir.path()).unwrap();
        assert!(shown.contains("<title>over 0</title>"), "wider than {width}");
    }
}
