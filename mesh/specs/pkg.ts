import { z } from 'zod'
import { defineSpec, onlyLooks, present, same, word } from './spec.ts'

/** A dash at the end would tell apt to remove the package. */
const packageName = z
  .string()
  .max(200)
  .regex(/^[a-z0-9][a-z0-9.+-]*[a-z0-9+.](?:=[A-Za-z0-9][A-Za-z0-9.+:~-]*[A-Za-z0-9.+~])?$/, 'is no package name')

/** Words as people search for them: nothing that a pattern language would take for more. */
export const pkgSearchArgs = z.strictObject({
  text: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9 .+-]{0,99}$/, 'is no search text'),
  limit: z.number().int().min(1).max(500).default(50),
})

export const pkgInstallArgs = z.strictObject({ packages: z.array(packageName).min(1).max(20) })

/**
 * Looser than the device's: how a version is spelled is left to the device, which says what is
 * wrong.
 */
const packageWord = z
  .string()
  .max(200)
  .regex(/^[a-z0-9][a-z0-9.+-]+(=[A-Za-z0-9.+:~-]+)?$/, 'is not the name of a package')

export const pkgSearch = defineSpec({
  name: 'pkg_search',
  isRare: true,
  capability: 'pkg.search',
  about: 'Search the packages that a device could install.',
  args: pkgSearchArgs,
  // The device's limit of 50 packages is enough for a model. Which characters a text may have, the
  // device says.
  input: () => pkgSearchArgs.omit({ limit: true }).extend({ text: word }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  proof: onlyLooks,
  inside: true,
  toArgs: present,
  toOutput: same,
  summary: ({ text }) => `Search packages for ${text}`,
})

export const pkgInstall = defineSpec({
  name: 'pkg_install',
  isRare: true,
  capability: 'pkg.install',
  about: 'Install packages of the operating system on a device.',
  args: pkgInstallArgs,
  input: () => pkgInstallArgs.extend({ packages: z.array(packageWord).min(1).max(20) }),
  effect: 'write',
  risk: 'high',
  reversible: false,
  inside: true,
  privileged: true,
  asked: true,
  streams: true,
  rehearses: true,
  toArgs: present,
  toOutput: same,
  summary: ({ packages }: { packages: string[] }) => `Install ${packages.join(', ')}`,
  proof: {
    promised: 'the packages are installed: installing them again would change nothing',
    otherwise: 'the package manager cannot be asked there; look at the installed versions yourself afterwards',
  },
  promise: ({ packages }: { packages: string[] }) => ({
    look: () => ({ capability: 'pkg.install', args: { packages }, rehearse: true }),
    holds({ result }) {
      if (result === null) return { holds: false, observed: `no package ${packages.join(', ')} is known there` }
      if (typeof result.would_change !== 'boolean') return null
      return result.would_change
        ? { holds: false, observed: `${packages.join(', ')} would still have to be installed` }
        : { holds: true, observed: `installing ${packages.join(', ')} again would change nothing` }
    },
  }),
})

export const pkgSpecs = [pkgInstall, pkgSearch]
