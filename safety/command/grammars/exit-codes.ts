/**
 * Exit codes other than 0 with which a program has done what it was asked to do, from its manual. Everything else that is not 0 says that
 * it failed. `commands`: codes of a sub-command, instead of those of the program.
 */
export type ExitCodes = {
  manual: string
  codes: readonly number[]
  commands?: Readonly<Record<string, readonly number[]>>
}

const noMatch = (manual: string): ExitCodes => ({ manual, codes: [1] })

export const exitCodes: Readonly<Record<string, ExitCodes>> = {
  // 1: no line was selected; 2 is an error.
  grep: noMatch('grep(1), GNU grep 3.8'),
  egrep: noMatch('grep(1), GNU grep 3.8'),
  fgrep: noMatch('grep(1), GNU grep 3.8'),
  zgrep: noMatch('zgrep(1), gzip 1.12'),
  rg: noMatch('rg(1), ripgrep 13'),
  pgrep: noMatch('pgrep(1), procps-ng 4.0'),
  pidof: noMatch('pidof(8), sysvinit-utils 3.06'),
  // 1: the inputs differ; 2 is trouble.
  diff: { manual: 'diff(1), diffutils 3.8', codes: [1] },
  cmp: { manual: 'cmp(1), diffutils 3.8', codes: [1] },
  git: { manual: 'git-diff(1): --exit-code', codes: [], commands: { diff: [1] } },
  // 1: the expression is false.
  test: { manual: 'test(1), coreutils 9.1', codes: [1] },
  '[': { manual: 'test(1), coreutils 9.1', codes: [1] },
  // Codes of the LSB: 3 is "not running"; of is-enabled and is-failed 1 is "no".
  systemctl: {
    manual: 'systemctl(1), systemd 252',
    codes: [],
    commands: { 'is-active': [3], status: [3], 'is-enabled': [1], 'is-failed': [1] },
  },
  // 24: files vanished at the source while it ran; the rest was transferred.
  rsync: { manual: 'rsync(1), 3.2', codes: [24] },
  // 1: errors were found and corrected.
  fsck: { manual: 'fsck(8), util-linux 2.38', codes: [1] },
  e2fsck: { manual: 'e2fsck(8), e2fsprogs 1.47', codes: [1] },
  'fsck.ext4': { manual: 'e2fsck(8), e2fsprogs 1.47', codes: [1] },
  // 100: there are updates.
  dnf: { manual: 'dnf(8), 4.14', codes: [], commands: { 'check-update': [100] } },
  yum: { manual: 'yum(8), 4.14', codes: [], commands: { 'check-update': [100] } },
}
