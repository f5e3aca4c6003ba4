import { access } from 'node:fs/promises'
import type { Manifest } from '../../../domain/mesh.ts'

/** What `fs.*` needs: roots to stay inside, and /proc, through which directories are held. */
export async function lacksProc(manifest: Manifest): Promise<string | null> {
  if (manifest.roots.length === 0) return 'the manifest names no roots'
  try {
    await access('/proc/self/fd')
    return null
  } catch {
    return '/proc is not mounted, and without it no path can be walked safely'
  }
}

export async function lacksWritableRoot(manifest: Manifest): Promise<string | null> {
  if (manifest.roots.length > 0 && !manifest.roots.some(({ writable }) => writable))
    return 'the manifest names no root that may be written'
  return lacksProc(manifest)
}
