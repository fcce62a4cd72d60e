//! Records as a Parquet table: the columns of every table, with types.
//!
//! Owns the Arrow types of the columns, and how many rows are held before they are written. Never touches a file: it
//! gives bytes.

use std::io;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::columns::{COLUMNS, Cell, Kind, cells};
use super::digest::Digest;

/// Rows that are held as values.
const HELD: usize = 1024;

/// Rows of a group, which is held encoded until it is complete.
const GROUP: usize = 16 * HELD;

/// Columns under way.
pub struct Table {
    columns: [Column; COLUMNS.len()],
    rows: usize,
    writer: ArrowWriter<Vec<u8>>,
}

/// The values of a column that are held.
enum Column {
    Text(Vec<Option<String>>),
    Whole(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
    Time(Vec<Option<i64>>),
}

impl Table {
    /// A table without rows.
    ///
    /// # Errors
    /// When the types of the columns are none that Parquet knows.
    pub fn new() -> io::Result<Self> {
        let mut columns = columns();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(GROUP))
            .set_created_by(concat!("coroner ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let schema = batch(&mut columns)?.schema();
        let writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties)).map_err(io::Error::other)?;
        Ok(Self {
            columns,
            rows: 0,
            writer,
        })
    }

    /// Adds a record; gives the bytes that are to be written next, often none.
    ///
    /// # Errors
    /// When the values cannot be encoded.
    pub fn row(&mut self, digest: &Digest, label: Option<&str>) -> io::Result<Vec<u8>> {
        for (column, cell) in self.columns.iter_mut().zip(cells(digest, label)) {
            match (column, cell) {
                (Column::Text(held), Cell::Text(text)) => held.push(text.map(String::from)),
                (Column::Whole(held), Cell::Whole(number)) => held.push(number.and_then(|n| i64::try_from(n).ok())),
                (Column::Real(held), Cell::Real(number)) => held.push(number),
                (Column::Time(held), Cell::Time(time)) => held.push(time.map(|t| t.and_utc().timestamp_micros())),
                _ => return Err(io::Error::other("a value is not of the kind of its column")),
            }
        }
        self.rows += 1;
        match self.rows % HELD {
            0 => self.encode(),
            _ => Ok(Vec::new()),
        }
    }

    fn encode(&mut self) -> io::Result<Vec<u8>> {
        let batch = batch(&mut self.columns)?;
        self.writer.write(&batch).map_err(io::Error::other)?;
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    /// The last bytes.
    ///
    /// # Errors
    /// When the values cannot be encoded.
    pub fn end(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = self.encode()?;
        bytes.append(&mut self.writer.into_inner().map_err(io::Error::other)?);
        Ok(bytes)
    }
}

fn columns() -> [Column; COLUMNS.len()] {
    COLUMNS.map(|(_, kind)| match kind {
        Kind::Text => Column::Text(Vec::new()),
        Kind::Whole => Column::Whole(Vec::new()),
        Kind::Real => Column::Real(Vec::new()),
        Kind::Time => Column::Time(Vec::new()),
    })
}

/// What the columns hold, as a batch with the schema of the table; they are empty then.
fn batch(columns: &mut [Column; COLUMNS.len()]) -> io::Result<RecordBatch> {
    use std::mem::take;
    let arrays = COLUMNS.iter().zip(columns).map(|((name, _), column)| {
        let array: ArrayRef = match column {
            Column::Text(held) => Arc::new(StringArray::from(take(held))),
            Column::Whole(held) => Arc::new(Int64Array::from(take(held))),
            Column::Real(held) => Arc::new(Float64Array::from(take(held))),
            Column::Time(held) => Arc::new(TimestampMicrosecondArray::from(take(held))),
        };
        (*name, array, *name != "source")
    });
    RecordBatch::try_from_iter_with_nullable(arrays).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let rows = GROUP + HELD + 7;
        let mut table = Table::new().unwrap();
        let mut bytes = Vec::new();
        for n in 0..rows {
            let record = match n % 2 {
                0 => format!(
                    r#"{{"source":"{n}.log","outcome":"failed","cause":{{"id":"x.y","confidence":0.5}},
                        "root":{{"rank":3,"line":{n},"text":"x"}},"examined":{{"files":1,"bytes":{n},"lines":9}},
                        "launch":{{"died":"2026-11-25T13:00:00Z","seconds_to_death":3600,"gpus":2}}}}"#
                ),
                _ => format!(r#"{{"source":"{n}.log","error":{{"id":"x","text":"no"}}}}"#),
            };
            bytes.extend(table.row(&Digest::of(&record).unwrap(), Some("west")).unwrap());
        }
        assert!(
            bytes.starts_with(b"PAR1") && bytes.len() > 1000,
            "groups are written as they are complete"
        );
        bytes.extend(table.end().unwrap());

        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let types: Vec<String> = builder
            .schema()
            .fields()
            .iter()
            .map(|f| format!("{} {}", f.name(), f.data_type()))
            .collect();
        assert_eq!(types[3], "confidence Float64");
        assert_eq!(types[8], "time Timestamp(µs)");
        assert_eq!(types[12], "rank Int64");
        let mut read = 0;
        for batch in builder.build().unwrap() {
            let batch = batch.unwrap();
            let sources = batch.column_by_name("source").unwrap().as_string::<i32>();
            let lines = batch.column_by_name("root_line").unwrap();
            let lines = lines.as_primitive::<arrow_array::types::Int64Type>();
            for n in 0..batch.num_rows() {
                assert_eq!(sources.value(n), format!("{read}.log"));
                assert_eq!(lines.is_null(n), read % 2 == 1);
                assert!(read % 2 == 1 || lines.value(n) == read);
                read += 1;
            }
        }
        assert_eq!(read as usize, rows);
    }
}
