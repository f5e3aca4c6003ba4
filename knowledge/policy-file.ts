import { constants } from 'node:fs'
import { open, realpath } from 'node:fs/promises'
import { join } from 'node:path'

/** A policy file that was found beside the runbooks, before any check of its content. */
export type FoundPolicy = {
  /** The path within its repository or folder. */
  path: string
  commit: string | null
} & ({ bytes: Uint8Array } | { problem: { why: string; remedy: string } })

/** Maximum size of a policy file. A larger file is not read, and the policy's reader reports it. */
export const maxPolicyFileBytes = 1_048_577

export const policyPath = /^(?:(?:knowledge|runbooks|skills)\/)?policy\.ya?ml$/
const inFolder = ['policy.yaml', 'policy.yml']

/** Finds the policy files of a folder. Does not read a name that leads outside the folder. */
export async function findPolicyFiles(folder: string): Promise<FoundPolicy[]> {
  const root = await realpath(folder)
  const found = await Promise.all(inFolder.map((name) => findIn(root, name)))
  return found.flatMap((file) => file ?? [])
}

async function findIn(root: string, name: string): Promise<FoundPolicy | null> {
  const refused = (why: string): FoundPolicy => ({
    ...{ path: name, commit: null },
    problem: { why, remedy: 'put a plain file at this path that the API process may read' },
  })
  try {
    const path = await realpath(join(root, name))
    if (!path.startsWith(`${root}/`)) return refused('a symbolic link points out of its folder')
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      if (!(await handle.stat()).isFile()) return refused('it is not a plain file')
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(maxPolicyFileBytes), 0, maxPolicyFileBytes, 0)
      return { path: name, commit: null, bytes: buffer.subarray(0, bytesRead) }
    } finally {
      await handle.close()
    }
  } catch (error) {
    const { code = 'failed' } = error as { code?: string }
    return code === 'ENOENT' ? null : refused(`it cannot be read (${code})`)
  }
}
