//! Module synth.
