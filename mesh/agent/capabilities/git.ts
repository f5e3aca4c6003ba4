import { z } from 'zod'
import type { Manifest } from '../../../domain/mesh.ts'
import type { Weight } from '../capability.ts'
import { isInstalled } from '../programs.ts'
import type { Misplaced } from '../roots.ts'
import { lacksWritableRoot } from './fs.ts'

/** A branch by its plain name; nothing that git could take for an option, a range or a deletion. */
export const branchName = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9_](?:[A-Za-z0-9_+-]|[./](?=[A-Za-z0-9_+-]))*$/, 'is no branch name')
  .refine((name) => !name.split('/').some((part) => part.endsWith('.lock')), 'is no branch name')

export async function lacksGit(manifest: Manifest): Promise<string | null> {
  return (await isInstalled('git')) ? lacksWritableRoot(manifest) : 'git is not installed'
}

export const refusedBy = ({ code, message }: Misplaced): Weight => ({
  effect: 'refused',
  reason: message,
  code,
  command: null,
})
