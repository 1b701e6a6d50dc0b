mod asking;
mod server;
mod sse;
mod tls;
mod urls;
