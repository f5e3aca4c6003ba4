import { request } from './http.ts'

/**
 * Asks an address of SNS that `ingest/sns.ts` allowed, without redirects. Any status but 200 has a
 * null body.
 */
export type AskSns = (url: string) => Promise<{ status: number; text: string | null }>

/** A certificate is 2 kB. */
const maxSnsBytes = 64_000

export const askSns: AskSns = async (url) => {
  const options = { method: 'GET', timeoutMs: 5_000, maxBytes: maxSnsBytes, allow: 'private' } as const
  const { status, body } = await request({ ...options, url })
  return { status, text: status === 200 ? new TextDecoder().decode(body) : null }
}
