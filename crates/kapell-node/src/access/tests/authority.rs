use kapell_api::identity::{Distrust, Subject, Trust};
use kapell_core::board::CellId;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, UnixTime};

use super::*;

const NOW: Timestamp = Timestamp(1_800_000_000_000);
const LIFE: Duration = Duration::from_secs(60);

fn chain(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).map(|it| it.unwrap()).collect()
}

fn at(at: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_millis(at.0.try_into().unwrap()))
}

fn authority(text: &str) -> Authority {
    Authority::new(&key(text)).unwrap()
}

#[test]
fn one_key_gives_one_authority_byte_by_byte() {
    assert_eq!(authority("a").pem(), authority("a").pem());
    assert_eq!(authority("a").sum(), authority("a").sum());
    assert_ne!(authority("a").sum(), authority("b").sum());
}

#[test]
fn a_certificate_says_who_it_is_until_it_expires() {
    let authority = authority("a");
    let trust = Trust::new(&authority.pem()).unwrap();
    let id = CellId::from("one");
    let (_, csr) = request().unwrap();
    let cell = chain(&authority.cell(&id, &csr, NOW, LIFE).unwrap());
    assert_eq!(trust.judge(&cell, at(NOW)), Ok(Subject::Cell(id)));
    assert_eq!(trust.judge(&cell, at(NOW.after(LIFE * 2))), Err(Distrust::Expired));
    assert_eq!(trust.judge(&cell, at(NOW.before(LIFE * 60))), Err(Distrust::Early));
    let host = authority.host(&["127.0.0.1".to_owned()], NOW, LIFE).unwrap();
    assert_eq!(trust.judge(&chain(&host.chain), at(NOW)), Ok(Subject::Host));
    assert_eq!(trust.judge(&[], at(NOW)), Err(Distrust::Nobody));
    // The authority itself is nobody, and cannot be shown as if it were.
    assert!(trust.judge(&chain(&authority.pem()), at(NOW)).is_err());
}

#[test]
fn another_authority_vouches_for_nobody_here() {
    let (_, csr) = request().unwrap();
    let foreign = authority("b").cell(&"one".into(), &csr, NOW, LIFE).unwrap();
    let trust = Trust::new(&authority("a").pem()).unwrap();
    assert_eq!(trust.judge(&chain(&foreign), at(NOW)), Err(Distrust::Foreign));
}

#[test]
fn what_a_request_says_of_itself_does_not_count() {
    let authority = authority("a");
    let mut params = rcgen::CertificateParams::new(["evil.example".to_owned()]).unwrap();
    params.subject_alt_names.push(rcgen::SanType::URI("kapell://host".try_into().unwrap()));
    let key = rcgen::KeyPair::generate().unwrap();
    let csr = params.serialize_request(&key).unwrap().pem().unwrap();
    let cell = chain(&authority.cell(&"one".into(), &csr, NOW, LIFE).unwrap());
    let trust = Trust::new(&authority.pem()).unwrap();
    assert_eq!(trust.judge(&cell, at(NOW)), Ok(Subject::Cell("one".into())));
    assert!(!String::from_utf8_lossy(&cell[0]).contains("evil"));
    for bad in ["", "text", &csr.replace("MI", "AA")] {
        let refused = authority.cell(&"one".into(), bad, NOW, LIFE);
        assert!(matches!(refused, Err(AuthorityError::Request(_))), "{bad}: {refused:?}");
    }
}
