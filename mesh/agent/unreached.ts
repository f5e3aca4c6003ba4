import { isUnknownSigner } from '../../domain/unknown-signer.ts'

/** A certificate's fault, by OpenSSL's and Node's code. */
const certificateTrouble: Record<string, string> = {
  CERT_HAS_EXPIRED: 'its certificate has expired: renew it there',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet: look at the clocks of both hosts',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name: call it by the name in its certificate',
}
/** The other side speaks something else on that port. */
const noTls = new Set(['EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'])

/**
 * The reason why a control plane was not reached, and a person's step. `isPinned`: one authority
 * alone is believed.
 */
export function describeUnreached(api: string, error: Error, isPinned: boolean): string {
  const code = (error as NodeJS.ErrnoException).code ?? ''
  const known = certificateTrouble[code]
  if (known) return `${api} was not believed: ${known}`
  if (isUnknownSigner(code))
    return isPinned
      ? `${api} was not believed: its certificate is not of the authority that this host pinned when it enrolled. Where the authority was replaced, enrol again with a new token; else somebody may be in between`
      : `${api} was not believed: its certificate is of an authority that this host does not know. Name that authority in MESH_PUBLIC_CA_FILE of the control plane and paste its new line, which carries --ca-sha256, or add it to this host's own`
  if (noTls.has(code))
    return `${api} was not reached: what answers there speaks no TLS. Look at the port, and at http or https`
  return `${api} was not reached: ${error.message}`
}
