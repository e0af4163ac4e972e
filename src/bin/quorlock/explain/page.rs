//! What a page is.

/// One pitfall, told.
pub(super) struct Page {
    pub(super) title: &'static str,
    /// Headings and paragraphs; what is indented most are commands.
    pub(super) text: &'static str,
}
