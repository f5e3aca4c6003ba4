import { z } from 'zod'
import type { Given } from './process.ts'
import { certificatesIn } from './process.ts'

/** Keys of the device mesh (ed25519, PKCS8, PEM): in the API process and nowhere else. */
export const mesh = z.object({
  MESH_ROOT_KEY_FILE: z.string().min(1).optional(),
  MESH_SIGNING_KEY_FILE: z.string().min(1).optional(),
  MESH_NEXT_KEY_FILE: z.string().min(1).optional(),
  MESH_CA_FILE: z.string().min(1).optional(),
})

/** The mesh takes a root key and a signing key, and they are two: a signing key that was stolen must not sign manifests. */
export function meshProblems(given: Given): string[] {
  const { MESH_ROOT_KEY_FILE: root, MESH_SIGNING_KEY_FILE: signing, MESH_CA_FILE: ca } = given
  const keys = (['MESH_ROOT_KEY_FILE', 'MESH_SIGNING_KEY_FILE', 'MESH_NEXT_KEY_FILE'] as const).filter(
    (name) => given[name],
  )
  const problems: string[] = []
  if (keys.length > 0 && !root) problems.push(`MESH_ROOT_KEY_FILE is required when ${keys[0]} is set`)
  if (keys.length > 0 && !signing) problems.push(`MESH_SIGNING_KEY_FILE is required when ${keys[0]} is set`)
  if (new Set(keys.map((name) => given[name])).size < keys.length) {
    problems.push(`${keys.join(' and ')} name one file twice: each is a key of its own`)
  }
  if (ca && !certificatesIn(ca)) {
    problems.push(`MESH_CA_FILE names ${ca}, which cannot be read or holds no PEM certificate`)
  }
  return problems
}

export type MeshSettings = { rootKeyFile: string; signingKeyFile: string; nextKeyFile: string | null; ca?: string }

/** Where the keys of the device mesh are; null where none is set. */
export function meshSettings(config: z.infer<typeof mesh>): MeshSettings | null {
  const { MESH_ROOT_KEY_FILE, MESH_SIGNING_KEY_FILE, MESH_NEXT_KEY_FILE, MESH_CA_FILE } = config
  if (!MESH_ROOT_KEY_FILE || !MESH_SIGNING_KEY_FILE) return null
  const ca = MESH_CA_FILE ? certificatesIn(MESH_CA_FILE) : null
  return {
    rootKeyFile: MESH_ROOT_KEY_FILE,
    signingKeyFile: MESH_SIGNING_KEY_FILE,
    nextKeyFile: MESH_NEXT_KEY_FILE ?? null,
    ...(ca !== null && { ca }),
  }
}

/** Address of a device that its row leaves to the environment. Only such variables: no other is anybody's business. */
export function deviceUrlVariable(name: string): string | undefined {
  return name.endsWith('_DEVICE_MESH_URL') ? process.env[name] || undefined : undefined
}
