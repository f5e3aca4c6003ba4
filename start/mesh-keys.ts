import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

type MeshKeyFiles = { MESH_ROOT_KEY_FILE: string; MESH_SIGNING_KEY_FILE: string }

/**
 * Returns the files of an embedded mesh's keys. Makes the keys at the first start and keeps them,
 * because devices have pinned the root key. Only the owner of the files can read them.
 */
export function ensureMeshKeys(stateDir: string): MeshKeyFiles {
  const dir = join(stateDir, 'mesh')
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  chmodSync(dir, 0o700)
  return {
    MESH_ROOT_KEY_FILE: ensureKey(join(dir, 'root.pem')),
    MESH_SIGNING_KEY_FILE: ensureKey(join(dir, 'signing.pem')),
  }
}

function ensureKey(file: string): string {
  try {
    writeFileSync(file, newMeshKey(), { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return file
}

/** Creates a new private key of the mesh, as PEM. */
export function newMeshKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }) as string
}
