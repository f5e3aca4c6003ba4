import { z } from 'zod'
import { defineSpec, present, same, word } from './spec.ts'

const packageName = z
  .string()
  .max(200)
  .regex(/^[a-z0-9][a-z0-9.+-]+(=[A-Za-z0-9.+:~-]+)?$/, 'is not the name of a package')

export const pkgSearch = defineSpec({
  name: 'pkg_search',
  capability: 'pkg.search',
  about: 'Search the packages that a device could install.',
  input: z.strictObject({ text: word }),
  ...{ effect: 'read', risk: 'none', reversible: true, inside: true },
  toArgs: present,
  toOutput: same,
  summary: ({ text }) => `Search packages for ${text}`,
})

export const pkgInstall = defineSpec({
  name: 'pkg_install',
  capability: 'pkg.install',
  about: 'Install packages of the operating system on a device.',
  input: z.strictObject({ packages: z.array(packageName).min(1).max(20) }),
  ...{ effect: 'write', risk: 'high', reversible: false, inside: true },
  ...{ privileged: true, asked: true, streams: true, rehearses: true },
  toArgs: present,
  toOutput: same,
  summary: ({ packages }: { packages: string[] }) => `Install ${packages.join(', ')}`,
})
