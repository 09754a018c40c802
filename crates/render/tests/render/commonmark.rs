//! The dialect that everything is written in.

use proptest::prelude::*;
use talaria_render::{Dialect, parse, render};

use crate::support::{any_markdown, essence};

fn again(source: &str) -> String {
    render(&parse(source), Dialect::Markdown).text
}

proptest! {
    #![proptest_config(crate::same_every_time())]

    #[test]
    fn a_document_that_was_written_is_read_as_the_same_document(source in any_markdown()) {
        let written = again(&source);
        prop_assert_eq!(essence(&parse(&written)), essence(&parse(&source)), "{}", written);
    }
}
