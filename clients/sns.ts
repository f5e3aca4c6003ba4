import { request } from './http.ts'

/**
 * Reads an address of SNS that `ingest/sns.ts` has allowed, without redirects. `text` is null for
 * any status but 200.
 */
export type AskSns = (url: string) => Promise<{ status: number; text: string | null }>

/** The most bytes of a response. A certificate has 2 kB. */
const maxSnsBytes = 64_000

export const askSns: AskSns = async (url) => {
  const options = { method: 'GET', timeoutMs: 5_000, maxBytes: maxSnsBytes, allow: 'private' } as const
  const { status, body } = await request({ ...options, url })
  return { status, text: status === 200 ? new TextDecoder().decode(body) : null }
}
