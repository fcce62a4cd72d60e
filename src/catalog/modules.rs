//! Which rows of a table speak of the code in a file.
//!
//! Owns what it means that a module fits a path, and the index by which the few rows that may fit are found. Never
//! knows what the rows say.

use std::collections::HashMap;

/// The modules of a table's rows, by the part of a path at which each has to stand.
#[derive(Default)]
pub struct Modules {
    /// Name of the file → rows of that file, each with its module.
    files: HashMap<String, Vec<(String, usize)>>,
    /// First folder → rows of that folder or of one in it.
    folders: HashMap<String, Vec<(String, usize)>>,
}

impl Modules {
    /// Indexes the module of each row: the end of a path, `vllm/v1/worker/gpu_worker.py`, or a part of one that ends in
    /// `/`.
    pub fn new<'m>(modules: impl IntoIterator<Item = &'m str>) -> Self {
        let mut own = Self::default();
        for (row, module) in modules.into_iter().enumerate() {
            let (rows, key) = match module.ends_with('/') {
                true => (&mut own.folders, module.split('/').next()),
                false => (&mut own.files, module.rsplit('/').next()),
            };
            let key = key.unwrap_or_default().to_owned();
            rows.entry(key).or_default().push((module.to_owned(), row));
        }
        own
    }

    /// The rows whose module fits a path, in no order. A folder may stand at any part of the path, not only where its name
    /// first occurs: `/opt/pytorch/torch/nn/`.
    pub fn fitting<'a>(&'a self, path: &'a str) -> impl Iterator<Item = usize> + 'a {
        let name = path.rsplit('/').next().unwrap_or_default();
        let files = self.files.get(name).into_iter().flatten();
        let files = files.filter(|(module, _)| is_end(path, module));
        let mut at = 0;
        let parts = path.split('/').map(move |part| {
            let rest = path.get(at..).unwrap_or_default();
            at += part.len() + 1;
            (part, rest)
        });
        let folders = parts.flat_map(|(part, rest)| {
            let rows = self.folders.get(part).into_iter().flatten();
            rows.filter(move |(module, _)| rest.starts_with(module.as_str()))
        });
        files.chain(folders).map(|(_, row)| *row)
    }
}

/// Whether a path is that of this module.
pub fn is_end(path: &str, module: &str) -> bool {
    path.strip_suffix(module)
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stands_at_the_end_of_a_path_and_a_folder_anywhere_in_it() {
        let modules = Modules::new(["eng/worker.py", "torch/nn/", "worker.py", "eng/", "setup.py"]);
        let rows = |path: &str| {
            let mut rows: Vec<usize> = modules.fitting(path).collect();
            rows.sort_unstable();
            rows
        };
        assert_eq!(rows("/srv/eng/worker.py"), [0, 2, 3]);
        assert_eq!(rows("eng/worker.py"), [0, 2, 3]);
        assert_eq!(rows("/srv/my-eng/worker.py"), [2]);
        assert_eq!(rows("/opt/pytorch/torch/x/torch/nn/functional.py"), [1]);
        assert!(rows("/torch/nn").is_empty());
        assert_eq!(rows("/srv/eng/eng/x.py"), [3, 3]);
        assert!(rows("").is_empty());
    }
}
