mod bench;
mod hold;
mod honest;
mod leave;
mod property;
mod seats;
mod seek;
