//! Which of many literals stand in a text.
//!
//! Owns the index over four bytes of each literal and the search with it. An automaton over as many texts would be
//! larger than the processor's caches and take longer to build than most logs take to read; here each position of a
//! text costs one look at a table of 8 KiB. Never knows whose the literals are.

/// Bytes of a literal that the index holds.
const GRAM: usize = 4;
/// Bits of the table that a gram is looked up in first, as a power of two.
const BITS: u32 = 16;

/// Lines as every log has them. What stands in them is a poor thing to look for.
const COMMON: &str = "\
(APIServer pid=1) INFO 11-25 12:30:45 [loggers.py:127] Engine 000: Avg prompt throughput: 10.0 tokens/s, \
Running: 0 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%, Prefix cache hit rate: 0.0%\n\
(Worker_TP0 pid=11) ERROR 11-25 12:00:00 [multiproc_executor.py:1007] \
  File \"/usr/local/lib/python3.12/dist-packages/vllm/v1/executor/worker.py\", line 12, in __init__\n\
    return self.model_runner.load_model(self.vllm_config, *args, **kwargs)\n\
(EngineCore pid=200) INFO:     10.0.0.1:40000 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n\
Traceback (most recent call last): RuntimeError: Exception: failed with error: the value of the process is not \
Scheduler hit an exception: during handling of the above exception, another exception occurred:\n\
[2026-11-25 12:00:14 TP1] Decode batch. #running-req: 1, #token: 9, token usage: 0.02, cuda graph: True\n\
node-a:4104:5104 [4] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read NET/IB : GPU Direct RDMA Enabled\n\
torch.distributed.elastic sglang.srt.managers python3 ray.exceptions Capturing CUDA graphs model_path='/models', \
tensor_parallel_size=2, max_model_len=4096, quantization=None, enable_prefix_caching=True, trust_remote_code=False";

/// A set of literals, each of four bytes or more.
pub struct Literals {
    texts: Vec<String>,
    /// The grams by their hashes.
    marks: Marks,
    /// Grams in order, each with its literal and its place in it.
    grams: Vec<(u32, u32, u32)>,
}

impl Literals {
    /// Indexes the literals; one that is shorter than four bytes is never found.
    pub fn new(texts: Vec<String>) -> Self {
        let mut common = Marks::default();
        grams(COMMON.as_bytes()).for_each(|(_, gram)| common.add(gram));
        let mut marks = Marks::default();
        let mut entries = Vec::with_capacity(texts.len());
        for (slot, text) in texts.iter().enumerate() {
            let weights: Vec<u32> = text.bytes().map(commonness).collect();
            let rarest = grams(text.as_bytes())
                .zip(weights.windows(GRAM))
                .min_by_key(|((_, gram), weights)| (common.has(*gram), weights.iter().sum::<u32>()))
                .map(|(rarest, _)| rarest);
            let Some((at, gram)) = rarest else { continue };
            marks.add(gram);
            entries.push((gram, slot as u32, at as u32));
        }
        entries.sort_unstable();
        Self {
            texts,
            marks,
            grams: entries,
        }
    }

    /// A literal by its number.
    pub fn text(&self, slot: u32) -> &str {
        self.texts.get(slot as usize).map_or("", String::as_str)
    }

    /// All literals, by their numbers.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    /// The literals that stand in `text`, each with the byte at which it first does, in no order.
    pub fn find(&self, text: &str) -> Vec<(u32, usize)> {
        let bytes = text.as_bytes();
        let mut found: Vec<(u32, usize)> = Vec::new();
        let mut from = 0;
        while let Some((at, gram)) = self.marks.first(bytes, from) {
            from = at + 1;
            let first = self.grams.partition_point(|(g, ..)| *g < gram);
            let same = self.grams.get(first..).unwrap_or_default();
            for &(_, slot, offset) in same.iter().take_while(|(g, ..)| *g == gram) {
                let start = at.checked_sub(offset as usize);
                let stands = start
                    .and_then(|start| bytes.get(start..))
                    .is_some_and(|rest| rest.starts_with(self.text(slot).as_bytes()));
                if let Some(start) = start
                    && stands
                    && !found.iter().any(|(known, _)| *known == slot)
                {
                    found.push((slot, start));
                }
            }
        }
        found
    }
}

/// Each four bytes of a text, with their place.
fn grams(bytes: &[u8]) -> impl Iterator<Item = (usize, u32)> {
    bytes
        .windows(GRAM)
        .filter_map(|window| window.first_chunk().map(|gram| u32::from_le_bytes(*gram)))
        .enumerate()
}

/// A set of grams, which may seem to have some more.
struct Marks([u64; 1 << (BITS - 6)]);

impl Default for Marks {
    fn default() -> Self {
        Self([0; 1 << (BITS - 6)])
    }
}

impl Marks {
    fn add(&mut self, gram: u32) {
        let (word, bit) = Self::place(gram);
        if let Some(word) = self.0.get_mut(word) {
            *word |= 1 << bit;
        }
    }

    /// The first gram from this byte on that the set has. A loop of its own, which keeps all it needs in registers.
    #[inline(never)]
    fn first(&self, bytes: &[u8], from: usize) -> Option<(usize, u32)> {
        let mut rest = grams(bytes.get(from..)?);
        rest.find(|(_, gram)| self.has(*gram))
            .map(|(at, gram)| (from + at, gram))
    }

    fn has(&self, gram: u32) -> bool {
        let (word, bit) = Self::place(gram);
        self.0.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    fn place(gram: u32) -> (usize, u32) {
        let hash = gram.wrapping_mul(0x9e37_79b1) >> (u32::BITS - BITS);
        ((hash >> 6) as usize, hash & 63)
    }
}

/// How often a byte stands in logs, roughly.
const fn commonness(byte: u8) -> u32 {
    match byte {
        b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' | b' ' => 9,
        b'0'..=b'9' | b'l' | b'd' | b'c' | b'm' | b'p' | b'u' => 7,
        b'a'..=b'z' | b'.' | b':' | b',' | b'-' | b'_' | b'/' | b'=' => 5,
        b'A'..=b'Z' => 3,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(texts: &[&str]) -> Literals {
        Literals::new(texts.iter().map(|t| (*t).to_owned()).collect())
    }

    #[test]
    fn each_literal_is_found_where_it_first_stands() {
        let set = literals(&["abcd", "bcde", "cdefgh", "abcd and more", "never", "ends"]);
        let mut found = set.find("xx abcde abcd and more, which ends");
        found.sort_unstable();
        assert_eq!(found, [(0, 3), (1, 4), (3, 9), (5, 30)]);
        assert_eq!(set.find("abc"), []);
        assert_eq!(set.text(1), "bcde");
    }

    #[test]
    fn a_literal_of_common_words_only_is_found_too() {
        let set = literals(&[
            "INFO",
            "Traceback (most recent call last):",
            "größer",
            "\n    return self",
        ]);
        assert_eq!(set.find("- INFO: nichts ist größer").len(), 2);
        assert_eq!(set.find("Traceback (most recent call last):"), [(1, 0)]);
        assert_eq!(set.find("in f\n    return self.x"), [(3, 4)]);
    }

    #[test]
    fn every_literal_of_the_catalog_finds_itself() {
        let catalog = crate::catalog::Catalog::load().unwrap();
        let mut texts: Vec<String> = catalog
            .signatures()
            .iter()
            .flat_map(|s| s.def.literal.clone())
            .collect();
        texts.sort();
        texts.dedup();
        let set = Literals::new(texts.clone());
        let stands = |found: &[(u32, usize)], slot: usize| found.iter().any(|(s, at)| *s as usize == slot && *at == 3);
        for (slot, text) in texts.iter().enumerate() {
            let line = format!("-> {text} ...");
            let found = set.find(&line);
            assert!(stands(&found, slot), "{text}");
            assert_eq!(
                found.len(),
                texts.iter().filter(|t| line.contains(*t)).count(),
                "{text}"
            );
        }
    }
}
