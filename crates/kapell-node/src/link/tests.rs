use crate::board::{CallbackOutcome, Callbacks as _};

use super::*;

#[tokio::test]
async fn a_callback_to_a_metadata_address_is_refused() {
    let callbacks = HttpCallbacks::new(None);
    for url in [
        "http://169.254.169.254/latest",
        "http://[fe80::1]:80/",
        "http://[fd00:ec2::254]/",
        "ftp://a",
    ] {
        let outcome = callbacks.call(url, b"{}").await;
        assert!(matches!(outcome, CallbackOutcome::Refused(_)), "{url}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_callback_that_nobody_takes_may_be_made_again() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let outcome = HttpCallbacks::new(None).call(&format!("http://{free}/"), b"{}").await;
    let CallbackOutcome::NoAnswer(why) = outcome else { panic!("{outcome:?}") };
    assert!(why.contains("cannot be reached: Connection refused"), "{why}");
}

#[tokio::test]
async fn a_host_that_is_not_there_gives_no_answer() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let board = HttpBoard::new(&format!("http://{free}"), kapell_api::client::Options::default());
    let left = board.unwrap().leave(&"cell".into()).await;
    let Err(LinkError::NoAnswer(why)) = left else { panic!("{left:?}") };
    assert!(why.starts_with(&format!("nobody answers at http://{free}: ")), "{why}");
}
