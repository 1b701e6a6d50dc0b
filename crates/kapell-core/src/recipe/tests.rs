mod course;
mod health;
mod random;
mod shapes;
mod size;
