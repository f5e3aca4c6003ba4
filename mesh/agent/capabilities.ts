import { dockerOn } from './capabilities/docker.ts'
import { evaluate } from './capabilities/eval.ts'
import { exec } from './capabilities/exec.ts'
import { fsList } from './capabilities/fs-list.ts'
import { fsRead } from './capabilities/fs-read.ts'
import { fsStat } from './capabilities/fs-stat.ts'
import { fsWrite } from './capabilities/fs-write.ts'
import { gitClone } from './capabilities/git-clone.ts'
import { gitCommit } from './capabilities/git-commit.ts'
import { gitPush } from './capabilities/git-push.ts'
import { pkgInstall, pkgSearch } from './capabilities/pkg.ts'
import { procKill } from './capabilities/proc-kill.ts'
import { procList } from './capabilities/proc-list.ts'
import type { DeviceCapability } from './capability.ts'

/**
 * Everything that an agent can do, with the container engine where DOCKER_HOST would say it is. What the device lacks for it is found
 * out at the start.
 */
export const capabilitiesOn = (dockerHost: string | undefined): readonly DeviceCapability[] => [
  exec,
  evaluate,
  fsRead,
  fsWrite,
  fsList,
  fsStat,
  gitClone,
  gitCommit,
  gitPush,
  procList,
  procKill,
  pkgInstall,
  pkgSearch,
  ...Object.values(dockerOn(dockerHost)),
]

export const allCapabilities = capabilitiesOn(undefined)
