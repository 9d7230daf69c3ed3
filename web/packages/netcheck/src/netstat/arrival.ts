/** One message as its receiver saw it: sequence number, time sent (sender's clock), time received (receiver's), µs. */
export type Arrival = readonly [sequence: number, sent: number, received: number];
