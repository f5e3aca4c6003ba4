// The library's parts find each other by it.
import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'

x509.cryptoProvider.set(webcrypto as never)

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const day = 86_400_000

/** A certificate and its key, both PEM. */
export type Pair = { certificate: string; key: string }

export type Authority = {
  certificate: string
  issue(names: { dns?: string[]; ip?: string[]; expired?: boolean }): Promise<Pair>
}

/** An authority that nobody knows, made for a test. */
export async function newAuthority(name: string): Promise<Authority> {
  const keys = await newKeys()
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    ...{ name: `CN=${name}`, keys, signingAlgorithm: algorithm, serialNumber: '01' },
    ...validity(-1, 30),
    extensions: [
      new x509.BasicConstraintsExtension(true, 1, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return {
    certificate: root.toString('pem'),
    async issue({ dns = [], ip = [], expired = false }) {
      const own = await newKeys()
      const names = [...dns.map((value) => ({ type: 'dns', value })), ...ip.map((value) => ({ type: 'ip', value }))]
      const certificate = await x509.X509CertificateGenerator.create({
        ...{ subject: `CN=${dns[0] ?? ip[0]}`, issuer: root.subject, publicKey: own.publicKey },
        ...{ signingKey: keys.privateKey, signingAlgorithm: algorithm },
        ...(expired ? validity(-10, -2) : validity(-1, 10)),
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
          new x509.SubjectAlternativeNameExtension(names as never),
          await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
        ],
      })
      const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', own.privateKey as never)
      return { certificate: certificate.toString('pem'), key: x509.PemConverter.encode(pkcs8, 'PRIVATE KEY') }
    },
  }
}

type CryptoKey = webcrypto.CryptoKey

async function newKeys(): Promise<{ publicKey: CryptoKey; privateKey: CryptoKey }> {
  return (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as never
}

function validity(from: number, to: number) {
  return { notBefore: new Date(Date.now() + from * day), notAfter: new Date(Date.now() + to * day) }
}
