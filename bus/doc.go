// Package bus tells whoever is listening to a run what happens to it, on any node.
//
// It carries two things: a run's events, and the live deltas of its answers while they arrive. Neither is kept. The
// truth about events is the store's outbox: an event is written in one transaction with what it is about, with a
// sequence number of its own run, and stays there. The bus publishes it afterwards and no more than wakes the
// listeners, so a message that is lost, or comes twice, harms nothing: a listener knows the number it has seen and
// reads the store for the rest. [Listener.Follow] does exactly that. Live deltas are sent only while somebody listens:
// the answer that ends them is in the store. [Bus.Joined] tells who sends them that somebody new does, who may be told
// what came before.
//
// The messages go over core NATS, at most once; JetStream is not used. [Embedded] runs the server in this process,
// without a port, for a single node. With the addresses of a NATS cluster the same code joins many nodes.
//
// Subjects are ibid.v1.run.T.R.event and ibid.v1.run.T.R.live, where T and R are hashes of the tenant and of the run:
// both are arbitrary strings, and one tenant's run can never name another's. On ibid.v1.listen the nodes tell each
// other which runs they have listeners for.
//
// A listener that does not keep up is dropped, see [Listener.Dropped]; it slows nobody.
package bus
