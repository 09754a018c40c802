//! What tests share: a clock that is told the time, scripted vendors and agents, the contract suites.
