//! The tables by which entries are found: those of many literals, of which four bytes are looked for, and those of keys.
//!
//! Owns the choice of these bytes and the layout of the tables. `build.rs` makes those of the built-in entries with it,
//! the program those of what rule files add; so it stands alone. Never searches (see `literals` and `keys`).

use std::collections::BTreeMap;

/// Bytes of a literal that the tables hold.
const GRAM: usize = 4;
/// Bits of the table that a gram is looked up in first, as a power of two.
const BITS: u32 = 16;

/// A set of grams by their hashes, which may seem to have some more.
pub type Marks = [u64; 1 << (BITS - 6)];

/// The tables of a set of literals.
pub struct Tables {
    /// The literals, one behind the other.
    pub text: String,
    /// Where each ends in the text, bytes.
    pub ends: Vec<u32>,
    /// The grams by their hashes.
    pub marks: Marks,
    /// Grams in order, each with its literal and its place in it.
    pub grams: Vec<(u32, u32, u32)>,
}

/// Keys in order, each with the number of an entry that has it.
pub struct KeyTable {
    /// The keys, one behind the other.
    pub text: String,
    /// Where each ends in the text, bytes.
    pub ends: Vec<u32>,
    /// The entry of each.
    pub entries: Vec<u32>,
}

/// The literals of signatures, and whose they are.
pub struct Index {
    /// The literals, in order, each once.
    pub literals: Tables,
    /// The same with all digits alike, by the same numbers.
    pub digitless: Tables,
    /// The number of each literal with a signature that has it, in order.
    pub owners: Vec<(u32, u32)>,
}

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

/// The table of the keys of entries, each with the number of its entry.
pub fn keys<'k>(keys: impl IntoIterator<Item = (&'k str, u32)>) -> KeyTable {
    let mut keys: Vec<(&str, u32)> = keys.into_iter().collect();
    keys.sort_unstable();
    let (mut text, mut ends) = (String::new(), Vec::new());
    for (key, _) in &keys {
        text.push_str(key);
        ends.push(text.len() as u32);
    }
    KeyTable {
        text,
        ends,
        entries: keys.into_iter().map(|(_, entry)| entry).collect(),
    }
}

/// The index over literals, each with the signature that has it.
pub fn index<'t>(literals: impl IntoIterator<Item = (&'t str, u32)>) -> Index {
    let mut by_text: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (text, owner) in literals {
        by_text.entry(text).or_default().push(owner);
    }
    let digitless: Vec<String> = by_text.keys().map(|text| digits_alike(text)).collect();
    let slots = (0..).zip(by_text.values());
    Index {
        literals: tables(by_text.keys().copied()),
        digitless: tables(digitless.iter().map(String::as_str)),
        owners: slots
            .flat_map(|(slot, owners)| owners.iter().map(move |owner| (slot, *owner)))
            .collect(),
    }
}

/// A text with the same digit in place of all.
pub fn digits_alike(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_digit(), "0")
}

/// The tables of these literals; one that is shorter than four bytes has no gram.
pub fn tables<'t>(literals: impl IntoIterator<Item = &'t str>) -> Tables {
    let mut common = empty();
    grams(COMMON.as_bytes()).for_each(|(_, gram)| add(&mut common, gram));
    let (mut text, mut ends) = (String::new(), Vec::new());
    let (mut marks, mut entries) = (empty(), Vec::new());
    for (slot, literal) in literals.into_iter().enumerate() {
        text.push_str(literal);
        ends.push(text.len() as u32);
        let weights: Vec<u32> = literal.bytes().map(commonness).collect();
        let rarest = grams(literal.as_bytes())
            .zip(weights.windows(GRAM))
            .min_by_key(|((_, gram), weights)| (has(&common, *gram), weights.iter().sum::<u32>()))
            .map(|(rarest, _)| rarest);
        let Some((at, gram)) = rarest else { continue };
        add(&mut marks, gram);
        entries.push((gram, slot as u32, at as u32));
    }
    entries.sort_unstable();
    Tables {
        text,
        ends,
        marks,
        grams: entries,
    }
}

/// Each four bytes of a text, with their place.
pub fn grams(bytes: &[u8]) -> impl Iterator<Item = (usize, u32)> {
    bytes
        .windows(GRAM)
        .filter_map(|window| window.first_chunk().map(|gram| u32::from_le_bytes(*gram)))
        .enumerate()
}

/// Whether the set seems to have a gram.
pub fn has(marks: &Marks, gram: u32) -> bool {
    let (word, bit) = place(gram);
    marks.get(word).is_some_and(|word| word >> bit & 1 == 1)
}

fn add(marks: &mut Marks, gram: u32) {
    let (word, bit) = place(gram);
    if let Some(word) = marks.get_mut(word) {
        *word |= 1 << bit;
    }
}

const fn empty() -> Marks {
    [0; 1 << (BITS - 6)]
}

/// Word and bit of a gram.
fn place(gram: u32) -> (usize, u32) {
    let hash = gram.wrapping_mul(0x9e37_79b1) >> (u32::BITS - BITS);
    ((hash >> 6) as usize, hash & 63)
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
