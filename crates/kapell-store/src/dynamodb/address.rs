//! Where a table is, as a user writes it.

use std::path::PathBuf;
use std::str::FromStr;

use url::Url;

use crate::error::Error;
use crate::model::SHARDS;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) region: String,
    pub(super) table: String,
    pub(super) endpoint: Option<String>,
    pub(super) ca: Option<PathBuf>,
    pub(super) credentials: Credentials,
    /// Make the table if there is none.
    pub(super) create: bool,
    /// How many commits and scans may be under way at a time.
    pub(super) pool: usize,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Credentials {
    /// As other tools of AWS find them: environment, profile, web identity, container, machine.
    Found,
    /// A profile of the files where such tools keep them.
    Profile(String),
    /// A placeholder, for a server that looks at none.
    Nobody,
}

const OPTIONS: &str = "endpoint, ca, profile, credentials, create and pool";
/// One for each shard.
const POOL: usize = SHARDS as usize;

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // Whatever stands there may be a secret.
        let refused = |why: String| Error::BadUrl { url: "dynamodb:…".to_owned(), why };
        let url = Url::parse(text).map_err(|error| refused(error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() || url.port().is_some() {
            let why = "write `dynamodb://REGION/TABLE`: keys come from the environment or from a profile, and where another \
                       server is says `endpoint=URL`";
            return Err(refused(why.to_owned()));
        }
        let mut address = Self {
            region: url.host_str().unwrap_or_default().to_owned(),
            table: url.path().trim_matches('/').to_owned(),
            endpoint: None,
            ca: None,
            credentials: Credentials::Found,
            create: false,
            pool: POOL,
        };
        for (key, value) in url.query_pairs() {
            address.take(&key, &value).map_err(refused)?;
        }
        address.check().map_err(refused)?;
        Ok(address)
    }
}

impl Address {
    fn take(&mut self, key: &str, value: &str) -> Result<(), String> {
        match (key, value) {
            ("endpoint", _) => self.endpoint = Some(endpoint(value)?),
            ("ca", _) => self.ca = Some(PathBuf::from(value)),
            ("profile", _) => self.credentials = Credentials::Profile(value.to_owned()),
            ("credentials", "none") => self.credentials = Credentials::Nobody,
            ("credentials", _) => {
                return Err("credentials is `none`, for DynamoDB Local, or is left out".to_owned());
            }
            ("create", "true") => self.create = true,
            ("create", "false") => self.create = false,
            ("create", _) => return Err("create is `true` or `false`".to_owned()),
            ("pool", _) => {
                let number = value.parse().ok().filter(|number| (1..=1000).contains(number));
                self.pool = number.ok_or("pool is a number from 1 to 1000")?;
            }
            (unknown, _) => {
                return Err(format!("unknown option `{unknown}`; there are {OPTIONS}"));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let fits =
            |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
        if self.region.is_empty() || !self.region.bytes().all(fits) {
            return Err("the region comes first: `dynamodb://eu-central-1/TABLE`".to_owned());
        }
        let fits = |letter: u8| letter.is_ascii_alphanumeric() || b"_.-".contains(&letter);
        if !(3..=255).contains(&self.table.len()) || !self.table.bytes().all(fits) {
            let right = "3 to 255 letters, digits, `_`, `.` or `-`";
            return Err(format!("the table's name must be {right}: `dynamodb://REGION/TABLE`"));
        }
        Ok(())
    }

    /// What messages call it: it has no secrets.
    pub(super) fn name(&self) -> String {
        let endpoint = self.endpoint.as_deref().map(|url| format!("?endpoint={url}"));
        format!("dynamodb://{}/{}{}", self.region, self.table, endpoint.unwrap_or_default())
    }

    /// How a person makes the table that is not there.
    pub(super) fn advice(&self) -> String {
        let table = &self.table;
        format!(
            "there is no table `{table}`; add `create=true` to the URL once, as in `kapell host --store \
             'dynamodb://{}/{table}?create=true'`, or run `aws dynamodb create-table --table-name {table} \
             --attribute-definitions AttributeName=pk,AttributeType=S AttributeName=sk,AttributeType=B \
             --key-schema AttributeName=pk,KeyType=HASH AttributeName=sk,KeyType=RANGE \
             --billing-mode PAY_PER_REQUEST`",
            self.region
        )
    }
}

fn endpoint(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("endpoint is no URL: {error}"))?;
    let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() || !plain {
        return Err("endpoint is `https://HOST[:PORT]` or `http://HOST[:PORT]`".to_owned());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}
