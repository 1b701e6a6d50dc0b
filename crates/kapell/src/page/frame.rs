//! What is around every page.

use super::{Html, html};

const STYLE: &str = include_str!("assets/kapell.css");
const SCRIPT: &str = include_str!("assets/kapell.js");
const ICON: &str = include_str!("assets/favicon.svg");

/// A number that changes with what the assets hold, so that a browser may keep them.
const VERSION: u64 = {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let all = [STYLE.as_bytes(), SCRIPT.as_bytes(), ICON.as_bytes()];
    let mut file = 0;
    while file < all.len() {
        let mut at = 0;
        while at < all[file].len() {
            hash = (hash ^ all[file][at] as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        file += 1;
    }
    hash
};

/// The kind and the text of a file that pages use.
pub(crate) fn asset(path: &str) -> Option<(&'static str, &'static str)> {
    match path {
        "/assets/kapell.css" => Some(("text/css; charset=utf-8", STYLE)),
        "/assets/kapell.js" => Some(("text/javascript; charset=utf-8", SCRIPT)),
        "/assets/favicon.svg" | "/favicon.ico" => Some(("image/svg+xml", ICON)),
        _ => None,
    }
}

pub(super) struct Frame {
    pub(super) title: String,
    /// Where the script gets the changing part anew.
    pub(super) fragment: Option<String>,
    /// The last event that the page shows.
    pub(super) after: Option<String>,
    /// What stands below the changing part and is kept up to date by itself.
    pub(super) below: Option<Html>,
}

impl Frame {
    pub(super) fn around(&self, content: &Html) -> Html {
        let mut out = self.head();
        html!(out; "<body");
        if let (Some(fragment), Some(after)) = (&self.fragment, &self.after) {
            html!(out; " data-fragment=\"" (fragment) "\" data-after=\"" (after) "\"");
        }
        html!(out;
            "><a class=\"skip\" href=\"#main\">Skip to content</a>\n"
            "<header><nav aria-label=\"Main\"><a class=\"brand\" href=\"/\">Kapell</a> <a href=\"/jobs\">Jobs</a> <a href=\"/runs\">Runs</a></nav>"
            "<p id=\"link\" class=\"link\" role=\"status\"></p>"
            "<form method=\"post\" action=\"/logout\"><button>Sign out</button></form></header>\n"
            "<main id=\"main\" tabindex=\"-1\">\n<div id=\"fragment\">\n" {content} "</div>\n" {self.below.clone().unwrap_or_default()} "</main>\n"
            "<noscript><p class=\"notice\">Without JavaScript this page shows how it was when it was loaded.</p></noscript>\n"
            "</body></html>\n"
        );
        out
    }

    fn head(&self) -> Html {
        let mut out = Html::default();
        let version = format!("{VERSION:016x}");
        html!(out;
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" (self.title) " · Kapell</title>\n"
            "<link rel=\"icon\" type=\"image/svg+xml\" href=\"/assets/favicon.svg?v=" (version) "\">\n"
            "<link rel=\"stylesheet\" href=\"/assets/kapell.css?v=" (version) "\">\n"
            "<script src=\"/assets/kapell.js?v=" (version) "\" defer></script></head>\n"
        );
        out
    }
}

/// A page that asks for the token.
pub(crate) fn login(trouble: Option<&str>) -> String {
    let frame = Frame { title: "Sign in".to_owned(), fragment: None, after: None, below: None };
    let mut out = frame.head();
    html!(out;
        "<body><main id=\"main\" class=\"narrow\"><h1>Kapell</h1>\n"
        "<form method=\"post\" action=\"/login\" class=\"card\">\n"
        "<label for=\"token\">Token</label>\n"
        "<input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" required autofocus aria-describedby=\"help\">\n"
    );
    if let Some(trouble) = trouble {
        html!(out; "<p class=\"trouble\" role=\"alert\">" (trouble) "</p>\n");
    }
    html!(out;
        "<p id=\"help\" class=\"quiet\">It is in the file <code>token</code> of the host's state directory; <code>kapell up</code> prints an address that has it.</p>\n"
        "<button>Sign in</button></form></main></body></html>\n"
    );
    out.into_string()
}

/// A page that says why there is none.
pub(crate) fn sorry(status: u16, why: &str) -> String {
    let title = match status {
        404 => "Not found",
        503 => "Not now",
        _ => "Something is wrong",
    };
    let mut content = Html::default();
    html!(content; "<h1>" (title) "</h1>\n<p>" (why) "</p>\n<p><a href=\"/\">To the overview</a></p>\n");
    let frame = Frame { title: title.to_owned(), fragment: None, after: None, below: None };
    frame.around(&content).into_string()
}
