use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use regex::Regex;

use super::*;

fn tree(files: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x\n").unwrap();
    }
    dir
}

fn found(root: &Path, change: impl FnOnce(&mut Choice)) -> Vec<String> {
    let mut choice = Choice {
        roots: vec![root.to_owned()],
        ..Choice::default()
    };
    change(&mut choice);
    let prefix = format!("{}/", root.display());
    let short = |source: String| source.strip_prefix(&prefix).map(str::to_owned).unwrap_or(source);
    walk(choice)
        .unwrap()
        .map(|found| match found {
            Found::Incident(i) => format!("{} {}", short(i.source), i.files.len()),
            Found::Unreadable { source, .. } => format!("! {}", short(source)),
        })
        .collect()
}

#[test]
fn files_and_folders_that_are_one_launch_come_in_order_of_path() {
    let dir = tree(&[
        "b.log",
        "a/x.log",
        "a/c/rank0.log",
        "a/c/rank1.log",
        "a/c/deep/y.log",
        "a/z.log",
        ".h/q.log",
    ]);
    assert_eq!(
        found(dir.path(), |_| ()),
        ["a/c 3", "a/x.log 1", "a/z.log 1", "b.log 1"]
    );
}

#[test]
fn a_root_may_be_one_launch_and_roots_may_overlap() {
    let dir = tree(&["node-a.log", "sub/more.log"]);
    let whole = found(dir.path(), |_| ());
    assert_eq!(whole, [format!("{} 2", dir.path().display())]);
    let below = dir.path().join("sub");
    let same = found(dir.path(), |c| c.roots.extend([below, dir.path().to_owned()]));
    assert_eq!(same, whole);
}

#[test]
fn folders_and_patterns_group_as_asked() {
    let dir = tree(&["a/1.log", "a/2.log", "a/n/3.log", "job-7.out.txt", "z/job-7.log"]);
    let got = found(dir.path(), |c| c.rule = Rule::Folder);
    assert_eq!(got[..2], ["a/n 1", "a 2"]);
    let got = found(dir.path(), |c| {
        c.rule = Rule::Pattern(Regex::new(r"(job-\d+)").unwrap())
    });
    assert_eq!(got, ["a/1.log 1", "a/2.log 1", "a/n/3.log 1", "job-7 2"]);
}

#[test]
fn globs_and_ignore_files_choose() {
    let dir = tree(&["a.log", "b.txt", "old/c.log", ".gitignore"]);
    fs::write(dir.path().join(".gitignore"), "*.log\n").unwrap();
    assert_eq!(
        found(dir.path(), |c| c.globs.push("*.log".into())),
        ["a.log 1", "old/c.log 1"]
    );
    fs::write(dir.path().join(".coronerignore"), "old/\n").unwrap();
    assert_eq!(found(dir.path(), |_| ()), ["a.log 1", "b.txt 1"]);
    assert_eq!(found(dir.path(), |c| c.globs.push("!*.txt".into())), ["a.log 1"]);
}

#[test]
fn what_is_older_is_left_out_and_counted() {
    let dir = tree(&["new.log", "old.log"]);
    let old = fs::File::options()
        .write(true)
        .open(dir.path().join("old.log"))
        .unwrap();
    old.set_modified(SystemTime::now() - Duration::from_secs(90_000))
        .unwrap();
    let mut walk = walk(Choice {
        roots: vec![dir.path().to_owned()],
        since: Some(SystemTime::now() - Duration::from_secs(3600)),
        ..Choice::default()
    })
    .unwrap();
    let older = walk.older();
    assert_eq!(walk.by_ref().count(), 1);
    assert_eq!(older.load(Ordering::Relaxed), 1);
}

#[cfg(unix)]
#[test]
fn links_are_followed_once_and_loops_end() {
    use std::os::unix::fs::symlink;
    let dir = tree(&["run/session_1/a.log"]);
    let outside = tree(&["far.log"]);
    let at = |path: &str| -> PathBuf { dir.path().join(path) };
    symlink(at("run/session_1"), at("run/session_latest")).unwrap();
    symlink(at("run"), at("run/session_1/up")).unwrap();
    symlink(outside.path(), at("x")).unwrap();
    symlink(outside.path(), at("y")).unwrap();
    symlink(at("nowhere"), at("broken.log")).unwrap();
    let want = ["! broken.log", "run/session_1/a.log 1", "x/far.log 1"];
    assert_eq!(found(dir.path(), |_| ()), want);
}

#[test]
fn what_is_not_there_is_told() {
    assert_eq!(found(Path::new("/no/such/folder"), |_| ()), ["! /no/such/folder"]);
    assert_eq!(found(Path::new("/no/such"), |c| c.roots.clear()), [""; 0]);
}
