import { isIP } from 'node:net'
import { request as send } from 'undici'
import { allows } from './address.ts'
import { agentFor, faultOf, HttpError, type HttpRequest } from './http.ts'

/** Longer than any line that is worth reading. */
const maxLineCharacters = 64_000

/**
 * The lines of an answer as they come, under the same guard, clock and limits as `request`. Ends with the answer. Throws HttpError;
 * an answer that is no success is one too.
 */
export async function* streamLines(options: HttpRequest): AsyncGenerator<string> {
  const url = URL.parse(options.url)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new HttpError('protocol', 'the address is not an http(s) URL', false)
  }
  const what = `${options.method} ${url.origin}`
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0 && !allows(options.allow, host)) {
    throw new HttpError('refused_address', `${what}: the address is refused by policy`, false)
  }
  const timeout = AbortSignal.timeout(options.timeoutMs)
  const signal = options.signal ? AbortSignal.any([timeout, options.signal]) : timeout
  try {
    const answer = await send(url, {
      method: options.method,
      headers: options.headers ?? {},
      dispatcher: agentFor(options.allow, options.ca),
      signal,
    })
    if (answer.statusCode !== 200) {
      answer.body.destroy()
      throw new HttpError('protocol', `${what} answered ${answer.statusCode}`, answer.statusCode >= 500)
    }
    const decoder = new TextDecoder()
    let rest = ''
    let bytes = 0
    for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
      bytes += chunk.byteLength
      if (bytes > options.maxBytes) throw new HttpError('too_large', `the answer to ${what} is too large`, false)
      const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n/)
      rest = (lines.pop() ?? '').slice(0, maxLineCharacters)
      yield* lines
    }
    if (rest !== '') yield rest
  } catch (error) {
    if (error instanceof HttpError) throw error
    if (options.signal?.aborted) throw new HttpError('aborted', `${what} was cancelled`, false)
    if (timeout.aborted) throw new HttpError('timeout', `${what} took longer than ${options.timeoutMs} ms`, true)
    throw faultOf(error, what)
  }
}
