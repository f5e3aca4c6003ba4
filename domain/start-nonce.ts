/**
 * Tells `npm start` that the process at a port is the one it started: each gets a random word and
 * says it on `/readyz`. Another server there does not know it, and gets none of our tokens.
 */
export const nonceSetting = 'NIGHTSHIFT_START_NONCE'
export const nonceHeader = 'x-nightshift-start'

type Fetch<A extends unknown[]> = (request: Request, ...rest: A) => Response | Promise<Response>

/** The same server, which says the word on `/readyz`. Without a word nothing is added. */
export function sayingNonce<A extends unknown[]>(fetch: Fetch<A>, nonce: string | undefined): Fetch<A> {
  if (!nonce) return fetch
  return async (request, ...rest) => {
    const response = await fetch(request, ...rest)
    if (new URL(request.url).pathname === '/readyz') response.headers.set(nonceHeader, nonce)
    return response
  }
}
