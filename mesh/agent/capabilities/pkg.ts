import { z } from 'zod'
import { apt } from '../apt.ts'
import type { DeviceCapability } from '../capability.ts'
import type { PackageManager } from '../packages.ts'
import { answered } from '../refused.ts'

/** Words as people search for them: nothing that a pattern language would take for more. */
const searchArgs = z.strictObject({
  text: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9 .+-]{0,99}$/, 'is no search text'),
  limit: z.number().int().min(1).max(500).default(50),
})

/** A dash at the end would tell apt to remove the package. */
const packageName = z
  .string()
  .max(200)
  .regex(/^[a-z0-9][a-z0-9.+-]*[a-z0-9+.](?:=[A-Za-z0-9][A-Za-z0-9.+:~-]*[A-Za-z0-9.+~])?$/, 'is no package name')
const installArgs = z.strictObject({ packages: z.array(packageName).min(1).max(20) })

export const searchWith = (manager: PackageManager): DeviceCapability<z.infer<typeof searchArgs>> => ({
  capability: 'pkg.search',
  args: searchArgs,
  lacks: () => manager.lacks(),
  weigh: () => ({ effect: 'read', reason: 'only looks', command: null }),
  run: ({ text, limit }, context) => answered(context.signal, () => manager.search(text, limit, context)),
})

export const installWith = (manager: PackageManager): DeviceCapability<z.infer<typeof installArgs>> => ({
  capability: 'pkg.install',
  args: installArgs,
  lacks: async () => (await manager.lacks()) ?? manager.lacksRights(),
  weigh: ({ packages }) => ({ effect: 'write', reason: `installs ${packages.join(', ')}`, command: null }),
  run: ({ packages }, context) => answered(context.signal, () => manager.install(packages, context)),
  rehearse: ({ packages }, context) => answered(context.signal, () => manager.simulate(packages, context)),
})

/** Both, with options for apt's every call: none where it is about this machine itself. */
export const pkgWith = (aptOptions: readonly string[]) => ({
  install: installWith(apt(aptOptions)),
  search: searchWith(apt(aptOptions)),
})

export const { search: pkgSearch, install: pkgInstall } = pkgWith([])
