//! Lists the catalog's data files, so that adding one touches no code, and turns each into JSON, which the program reads
//! faster at every start.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("src/catalog/data");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&root)?.filter_map(|e| e.ok().map(|e| e.path())).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let table: toml::Table = fs::read_to_string(file)?
            .parse()
            .map_err(|e| io::Error::other(format!("{}: {e}", file.display())))?;
        let decoded = out.join(format!("{name}.json"));
        fs::write(&decoded, serde_json::to_vec(&table)?)?;
        let _ = writeln!(
            list,
            "    ({name:?}, include_str!({:?})),",
            decoded.display().to_string()
        );
    }
    list.push(']');
    fs::write(out.join("catalog_data.rs"), list)
}
