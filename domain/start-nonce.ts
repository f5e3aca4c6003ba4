/**
 * Proves to `npm start` that the server at a port is the process that it started. Each started
 * process gets a random word and returns the word on `/readyz`. A foreign server does not know the
 * word, so it gets no token.
 */
export const nonceSetting = 'NIGHTSHIFT_START_NONCE'
export const nonceHeader = 'x-nightshift-start'

type Fetch<A extends unknown[]> = (request: Request, ...rest: A) => Response | Promise<Response>

/**
 * Wraps a server so that `/readyz` returns the word. Without a word, returns the server unchanged.
 */
export function sayingNonce<A extends unknown[]>(fetch: Fetch<A>, nonce: string | undefined): Fetch<A> {
  if (!nonce) return fetch
  return async (request, ...rest) => {
    const response = await fetch(request, ...rest)
    if (new URL(request.url).pathname === '/readyz') response.headers.set(nonceHeader, nonce)
    return response
  }
}
