import { truncate } from '../domain/format.ts'

/**
 * Finds why a certificate would be refused even with another authority: it is for another server,
 * or out of date. Null for any other error, such as an authority that is not trusted.
 */
export function findCertificateFault(error: unknown): string | null {
  const { code, cert } = error as {
    code?: unknown
    cert?: { subjectaltname?: string; subject?: { CN?: unknown } }
  }
  if (code === 'CERT_HAS_EXPIRED') return 'has a certificate that has expired: renew it at the server'
  if (code === 'CERT_NOT_YET_VALID')
    return 'has a certificate that is not valid yet: is the clock of this machine right?'
  if (code !== 'ERR_TLS_CERT_ALTNAME_INVALID') return null
  const names = cert?.subjectaltname ?? cert?.subject?.CN
  const named = names === undefined ? 'another name' : truncate(String(names).replace(/[^\x20-\x7e]+/g, ' '), 160)
  return `has a certificate for ${named}, but not for the name in its address: use a name of the certificate in the address`
}
