//! What a conditional statement is answered.

use scylla::response::query_result::QueryResult;
use scylla::value::{CqlTimestamp, CqlValue, Row};

use super::fault::Failure;

/// Whether a condition held.
#[derive(Debug)]
pub(super) enum Answer {
    Applied,
    /// What stood there instead, as far as the condition names it.
    Refused(Stood),
}

#[derive(Debug, Default)]
pub(super) struct Stood(Vec<(String, Option<CqlValue>)>);

impl Answer {
    pub(super) fn of(result: QueryResult) -> Result<Self, Failure> {
        let result = result.into_rows_result()?;
        let names: Vec<String> =
            result.column_specs().iter().map(|spec| spec.name().to_owned()).collect();
        let row = result.first_row::<Row>()?;
        let stood = Stood(names.into_iter().zip(row.columns).collect());
        match stood.get("[applied]") {
            Some(CqlValue::Boolean(true)) => Ok(Self::Applied),
            Some(CqlValue::Boolean(false)) => Ok(Self::Refused(stood)),
            _ => Err(Failure::Odd("it is not said whether a condition held".to_owned())),
        }
    }
}

impl Stood {
    /// None if it is null, and if there is no row at all.
    fn get(&self, name: &str) -> Option<&CqlValue> {
        self.0.iter().find(|(each, _)| each == name)?.1.as_ref()
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.as_bigint().map(i64::cast_unsigned)
    }

    pub(super) fn blob(&self, name: &str) -> Option<&[u8]> {
        self.get(name)?.as_blob().map(Vec::as_slice)
    }

    pub(super) fn time(&self, name: &str) -> Option<CqlTimestamp> {
        self.get(name)?.as_cql_timestamp()
    }
}
