//! Tells requests from all else that clients send.

use crate::place::Kind;

/// Reads what one connection sends.
#[derive(Debug)]
pub(crate) struct Wire {
    speech: Speech,
    buffer: Vec<u8>,
    /// What is left of a message that nobody has to look into.
    skip: usize,
    is_greeted: bool,
}

/// How messages are cut, and which of them ask for something of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speech {
    /// gRPC: each frame with data is a message, also on a stream that is open for long.
    Http2,
    /// An `Execute` or a simple query.
    Postgres,
    /// Whatever runs or prepares a statement. Signs of life are not counted.
    Cql,
    Http1,
}

const PREFACE: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();
const SSL_REQUEST: u32 = 80_877_103;
const QUERY: u8 = 0x07;
const PREPARE: u8 = 0x09;
const EXECUTE: u8 = 0x0a;
const BATCH: u8 = 0x0d;

impl Wire {
    /// None for a store without a server.
    pub(crate) fn of(kind: Kind) -> Option<Self> {
        let speech = match kind {
            Kind::Embedded => return None,
            Kind::Etcd => Speech::Http2,
            Kind::Postgres => Speech::Postgres,
            Kind::Cassandra => Speech::Cql,
            Kind::DynamoDb => Speech::Http1,
        };
        Some(Self { speech, buffer: Vec::new(), skip: 0, is_greeted: false })
    }

    /// How many requests begin in these bytes.
    pub(crate) fn hear(&mut self, mut bytes: &[u8]) -> u64 {
        let mut requests = 0;
        loop {
            let skipped = self.skip.min(bytes.len());
            bytes = &bytes[skipped..];
            self.skip -= skipped;
            if bytes.is_empty() {
                return requests;
            }
            self.buffer.extend_from_slice(bytes);
            let mut used = 0;
            while let Some(head) = self.head(used) {
                requests += u64::from(head.is_request);
                used += head.length;
                if used >= self.buffer.len() {
                    break;
                }
            }
            // More than there is: the rest of a message passes unread.
            self.skip = used.saturating_sub(self.buffer.len());
            self.buffer.drain(..used.min(self.buffer.len()));
            bytes = &[];
        }
    }

    /// The message that begins here, if enough of it is there.
    fn head(&mut self, at: usize) -> Option<Head> {
        let rest = self.buffer.get(at..)?;
        match self.speech {
            Speech::Http2 if !self.is_greeted => {
                self.is_greeted = rest.len() >= PREFACE;
                self.is_greeted.then_some(Head { length: PREFACE, is_request: false })
            }
            Speech::Http2 => {
                let head = rest.first_chunk::<9>()?;
                let length = number(&head[..3]);
                Some(Head { length: 9 + length, is_request: head[3] == 0 && length > 0 })
            }
            Speech::Postgres if !self.is_greeted => {
                let head = rest.first_chunk::<8>()?;
                self.is_greeted = number(&head[4..]) != SSL_REQUEST as usize;
                Some(Head { length: number(&head[..4]), is_request: false })
            }
            Speech::Postgres => {
                let head = rest.first_chunk::<5>()?;
                let is_request = matches!(head[0], b'E' | b'Q');
                Some(Head { length: 1 + number(&head[1..]), is_request })
            }
            Speech::Cql => {
                let head = rest.first_chunk::<9>()?;
                let is_request = matches!(head[4], QUERY | PREPARE | EXECUTE | BATCH);
                Some(Head { length: 9 + number(&head[5..]), is_request })
            }
            Speech::Http1 => {
                let end = rest.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
                let head = String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
                let body = length.and_then(|it| it.trim().parse::<usize>().ok()).unwrap_or(0);
                Some(Head { length: end + body, is_request: true })
            }
        }
    }
}

struct Head {
    length: usize,
    is_request: bool,
}

fn number(digits: &[u8]) -> usize {
    digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However it is cut, the same is heard.
    fn heard(kind: Kind, sent: &[u8]) -> u64 {
        let all = Wire::of(kind).unwrap().hear(sent);
        for part in 1..sent.len() {
            let mut wire = Wire::of(kind).unwrap();
            let parts: u64 = sent.chunks(part).map(|bytes| wire.hear(bytes)).sum();
            assert_eq!(parts, all, "in parts of {part}");
        }
        all
    }

    #[test]
    fn messages_of_streams_are_counted_and_pings_are_not() {
        let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        for (kind, body) in [(4, 6), (1, 20), (0, 30), (6, 8), (0, 12), (0, 0)] {
            sent.extend([0, 0, body, kind, 0, 0, 0, 0, 1]);
            sent.extend(vec![b'x'; body.into()]);
        }
        assert_eq!(heard(Kind::Etcd, &sent), 2);
    }

    #[test]
    fn statements_that_are_run_are_counted() {
        let mut sent = Vec::new();
        sent.extend([0, 0, 0, 8]);
        sent.extend(SSL_REQUEST.to_be_bytes());
        sent.extend([0, 0, 0, 12, 0, 3, 0, 0, b'u', b's', b'e', b'r']);
        for kind in [b'P', b'B', b'E', b'S', b'B', b'E', b'Q'] {
            sent.extend([kind, 0, 0, 0, 6, 1, 2]);
        }
        assert_eq!(heard(Kind::Postgres, &sent), 3);
        let frames = [0x01, 0x05, PREPARE, EXECUTE, 0x05, BATCH];
        let frame = |opcode| [&[4, 0, 0, 1, opcode, 0, 0, 0, 3][..], b"abc"].concat();
        assert_eq!(heard(Kind::Cassandra, &frames.map(frame).concat()), 3);
    }

    #[test]
    fn requests_with_bodies_are_counted() {
        let one = "POST / HTTP/1.1\r\nContent-Length: 5\r\nHost: x\r\n\r\n{\r\n\r\n";
        let sent = [one, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", one].concat();
        assert_eq!(heard(Kind::DynamoDb, sent.as_bytes()), 3);
    }
}
