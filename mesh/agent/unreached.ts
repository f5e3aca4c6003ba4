import { isUnknownSigner } from '../../domain/unknown-signer.ts'

/** Problems of a certificate, by the code of OpenSSL and Node. */
const certificateTrouble: Record<string, string> = {
  CERT_HAS_EXPIRED: 'its certificate has expired: renew the certificate on the control plane',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet: check the clocks of both hosts',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name: use the name in its certificate',
}
/** Error codes of TLS for a server that uses another protocol on its port. */
const noTls = new Set(['EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'])

/**
 * Describes why a control plane was not reached, and the remedy. `isPinned`: only one certificate
 * authority is trusted.
 */
export function describeUnreached(api: string, error: Error, isPinned: boolean): string {
  const code = (error as NodeJS.ErrnoException).code ?? ''
  const known = certificateTrouble[code]
  if (known) return `${api} is not trusted: ${known}`
  if (isUnknownSigner(code))
    return isPinned
      ? `${api} is not trusted: its certificate is not from the authority that this host pinned when it enrolled. If the authority was replaced, enrol again with a new token. If not, somebody may intercept the connection`
      : `${api} is not trusted: its certificate is from an authority that this host does not know. Name that authority in MESH_PUBLIC_CA_FILE of the control plane and paste its new line, which carries --ca-sha256, or add it to this host's own`
  if (noTls.has(code)) return `${api} was not reached: the server does not use TLS. Check the port, and http or https`
  return `${api} was not reached: ${error.message}`
}
