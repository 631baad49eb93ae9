//! Module register.
