//! What is counted for whoever collects figures: feature `metrics`. Without it nothing of this is there.
//!
//! README.md lists the names. No figure has the resource in it: there is no end to those.

/// One more of a counter.
macro_rules! count {
    ($($what:tt)*) => {{
        #[cfg(feature = "metrics")]
        {
            metrics::counter!($($what)*).increment(1);
        }
    }};
}

/// Moves a gauge.
macro_rules! gauge {
    ($change:ident $by:expr, $($what:tt)*) => {{
        let by: f64 = $by;
        #[cfg(feature = "metrics")]
        {
            metrics::gauge!($($what)*).$change(by);
        }
        #[cfg(not(feature = "metrics"))]
        let _ = by;
    }};
}
