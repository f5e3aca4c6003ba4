import { webcrypto, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { certificateFile } from './node/program.ts'
import { type Lab, nodeDirectory, writeForNode } from './state.ts'
import type { NodePlan } from './topology.ts'

const hourMs = 3_600_000
const usualHours = 90 * 24

export const certificatePath = (lab: Lab, { id }: NodePlan): string => join(nodeDirectory(lab, id), certificateFile)

/** Puts a certificate for a node's name in place, signed by itself, that ends in so many hours. */
export async function issueCertificate(lab: Lab, node: NodePlan, hours = usualHours): Promise<void> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, false, ['sign', 'verify'])
  // Loaded here, for few labs ever issue one; x509 needs the first to be there.
  await import('reflect-metadata')
  const { X509CertificateGenerator } = await import('@peculiar/x509')
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      name: `CN=${node.id}.${node.region}.lab.internal`,
      notBefore: new Date(Date.now() - hourMs),
      notAfter: new Date(Date.now() + hours * hourMs),
      signingAlgorithm: algorithm,
      keys,
    },
    webcrypto,
  )
  writeForNode(lab, certificatePath(lab, node), `${certificate.toString('pem')}\n`)
}

/** The same where there is none. */
export async function ensureCertificate(lab: Lab, node: NodePlan): Promise<void> {
  if (!existsSync(certificatePath(lab, node))) await issueCertificate(lab, node)
}

/** When the certificate of a node ends (milliseconds); 0 where it cannot be read. */
export function certificateEndMs(lab: Lab, node: NodePlan): number {
  try {
    return Date.parse(new X509Certificate(readFileSync(certificatePath(lab, node))).validTo)
  } catch {
    return 0
  }
}
