//! Integration scenarios over the whole product; one module each.
