import { connect, createServer, type NetConnectOpts, type Server } from 'node:net'

/**
 * A server that hands each connection on to one place; it does not listen yet. Either side may end
 * first.
 */
export function relayTo(place: NetConnectOpts): Server {
  return createServer({ allowHalfOpen: true }, (from) => {
    const to = connect({ ...place, allowHalfOpen: true })
    from.pipe(to).pipe(from)
    from.on('error', () => to.destroy())
    to.on('error', () => from.destroy())
  })
}
