import { webcrypto } from 'node:crypto'

/** A certificate with its key, both in PEM. */
export type ClusterCertificate = { certificate: string; key: string }

/** The authority that signs the certificates of one cluster. */
export type ClusterAuthority = {
  /** The authority's certificate in PEM, for clients that trust the authority. */
  certificate: string
  issue(subject: string, to: { names?: string[]; addresses?: string[]; endsAt?: Date }): Promise<ClusterCertificate>
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const dayMs = 24 * 3_600_000

/** Creates an authority that ends with the cluster, because its key is stored nowhere. */
export async function makeAuthority(name: string): Promise<ClusterAuthority> {
  // Loads x509 here, because few labs have a cluster. x509 needs `reflect-metadata` before it.
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  x509.cryptoProvider.set(webcrypto as never)
  const keys = await newKeys()
  const began = Date.now()
  const notBefore = new Date(began - 60_000)
  const own = await x509.X509CertificateGenerator.createSelfSigned(
    {
      name: `CN=${name}`,
      notBefore,
      notAfter: new Date(began + 30 * dayMs),
      signingAlgorithm: algorithm,
      keys,
      extensions: [
        new x509.BasicConstraintsExtension(true, 1, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      ],
    },
    webcrypto,
  )
  const issue: ClusterAuthority['issue'] = async (subject, { names = [], addresses = [], endsAt }) => {
    const leaf = await newKeys()
    const notAfter = endsAt ?? new Date(began + 20 * dayMs)
    const alternative = [
      ...names.map((value) => ({ type: 'dns' as const, value })),
      ...addresses.map((value) => ({ type: 'ip' as const, value })),
    ]
    const certificate = await x509.X509CertificateGenerator.create(
      {
        subject,
        issuer: own.subject,
        // Begins an expired certificate before its end.
        notBefore: new Date(Math.min(notBefore.getTime(), notAfter.getTime() - 90 * dayMs)),
        notAfter,
        signingAlgorithm: algorithm,
        publicKey: leaf.publicKey,
        signingKey: keys.privateKey,
        extensions: [
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
          ...(alternative.length > 0 ? [new x509.SubjectAlternativeNameExtension(alternative)] : []),
        ],
      },
      webcrypto,
    )
    return { certificate: `${certificate.toString('pem')}\n`, key: await keyPem(leaf.privateKey) }
  }
  return { certificate: `${own.toString('pem')}\n`, issue }
}

const newKeys = () => webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])

async function keyPem(key: webcrypto.CryptoKey): Promise<string> {
  const bytes = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key)).toString('base64')
  return `-----BEGIN PRIVATE KEY-----\n${bytes.replace(/.{64}/g, '$&\n')}\n-----END PRIVATE KEY-----\n`
}
