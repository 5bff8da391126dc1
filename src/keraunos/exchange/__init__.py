"""How workers share parameters: state machine, wire, server, client."""
