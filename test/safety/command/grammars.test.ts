import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import type { Grammar } from '../../../safety/command/grammar.ts'
import { grammars } from '../../../safety/command/grammars/index.ts'
import { judgeCommand } from '../../../safety/command/judge.ts'

type Row = { command: string; expected: string; source: string; label?: string; class?: string }

const rows = (file: string): Row[] =>
  JSON.parse(readFileSync(new URL(`../../data/commands/${file}.json`, import.meta.url), 'utf8'))
const reads = rows('reads')
const writes = rows('writes')
const nightly = rows('nightly')
const context = { knownHosts: new Set(['db-osl-1', '10.0.0.5']) }

/**
 * Every grammar with the words that lead to it, sub-commands with the options of the levels above.
 */
function all(): { path: string; grammar: Grammar; options: string[] }[] {
  const found: { path: string; grammar: Grammar; options: string[] }[] = []
  const visit = (path: string, grammar: Grammar, outer: string[]) => {
    const options = [...outer, ...Object.keys(grammar.options ?? {})]
    found.push({ path, grammar, options })
    for (const [name, inner] of Object.entries(grammar.commands ?? {})) visit(`${path} ${name}`, inner, options)
  }
  for (const [name, grammar] of Object.entries(grammars)) visit(name, grammar, [])
  return found
}

/**
 * Options that the manuals say write, run a program or read one, and words that act: none may ever
 * come in.
 */
const forbidden: Record<string, string> = {
  apt: '-o -c --option --config-file',
  awk: '-f -i -l -o -p -d -E --file --include',
  blkid: '-w -g -c',
  // What -d and its kin hold is judged as a part of the address, behind -G alone; headers and
  // methods are of a list.
  curl: '-F -T -K -O -D -c -b -x -u -L -A -e --form --upload-file --config --remote-name --next --trace',
  date: '-s -f --set --file',
  dig: '-f -k',
  dmesg: '-c -C -D -E -n -F -K --clear --read-clear --console-off --console-level',
  dmidecode: '--dump-bin',
  dpkg: '-i -r -P --install --remove --purge --configure --unpack --admindir --root',
  ethtool: '-s -K -A -C -G -L -r -p -f -E -X -N -U',
  file: '-f -m -C -z',
  find: '-delete -exec -execdir -ok -okdir -fls -fprint -fprint0 -fprintf -files0-from',
  fuser: '-k --kill',
  'git diff': '--ext-diff --textconv --output -O --no-index -c --exec-path',
  'git log': '--ext-diff --textconv --output -O -c --exec-path',
  grep: '-f --file',
  haproxy: '-D -sf -st',
  hostname: '-F -b --file',
  ip: '-b -batch -n -netns -force',
  iptables: '-A -D -F -I -N -P -X -Z -M --modprobe',
  jq: '-f -L --from-file --slurpfile --rawfile',
  journalctl: '--rotate --flush --sync --setup-keys --vacuum-size --vacuum-time --cursor-file --root --file -D',
  'kubectl get': '-f --filename --kubeconfig -s --server --token --as',
  lsof: '-D -k -A',
  mdadm: '-A -C -S -f -r -a --stop --fail --remove --add',
  mysql: '--tee --pager --init-command --defaults-file --plugin-dir -p',
  nginx: '-s -g -c -p',
  ping: '-f -p -s',
  psql: '-f -o -L -v --file --output --log-file --set',
  'redis-cli': '-a -x -u --eval --pipe --rdb',
  rg: '--pre --hostname-bin -f -z',
  rpm: '-e -U -F -E -D --eval --define --pipe --load --import --root --dbpath',
  sar: '-o',
  sed: '-i -f --in-place --file',
  smartctl: '-s -t -o -S -X -B --smart --test',
  sort: '-o -T --output --compress-program --files0-from --random-source',
  sqlite3: '-cmd -init -append -A',
  ss: '-K -D -E -F -N --kill --diag --events',
  sysctl: '-w -p --write --load --system',
  tcpdump: '-w -z -r -F -A -X -x -G -C -W',
  tar: '-x -c -r -u -A -I -F --to-command --checkpoint-action --use-compress-program --rsh-command',
  tree: '-o -R --fromfile',
  wget: '-P -o -i -e -x --post-data --post-file --method --execute --input-file',
  xxd: '-r -R',
  yq: '-i -s --inplace --split-exp',
}

const acting =
  /^(add|apply|change|clear|create|del|delete|destroy|disable|down|drain|edit|enable|exec|export|flush|import|install|kill|mask|patch|poweroff|prune|purge|reboot|reload|remove|replace|reset|restart|restore|rm|run|scale|set|start|stop|up|update|upgrade|write)(-|$)/

describe('the grammars', () => {
  test('name the manual that they are from', () => {
    const programs = all().filter(({ path }) => !path.includes(' '))
    expect(programs.length).toBeGreaterThan(400)
    expect(programs.filter(({ grammar }) => (grammar.manual ?? '').length <= 2)).toEqual([])
  })

  test('spell every option as it is typed', () => {
    for (const { path, grammar } of all()) {
      for (const option of Object.keys(grammar.options ?? {}))
        expect(`${path}: ${option}`).toMatch(/: (?:[-+][^\s]+|[a-z]+|[A-Z]+)$/)
    }
  })

  test('contain no option that writes, runs a program, reads one or leads elsewhere', () => {
    for (const [name, words] of Object.entries(forbidden)) {
      const known = all().filter(({ path }) => path === name || path.startsWith(`${name} `))
      expect([name, known.length > 0]).toEqual([name, true])
      for (const { path, options } of known) {
        const held = words.split(' ').filter((word) => options.includes(word))
        expect([path, held]).toEqual([path, []])
      }
    }
  })

  /**
   * A run of a pipeline is listed and viewed; of upgrades, removals and restores only how far they
   * are is told.
   */
  const things =
    /^(?:gh run|ceph orch (?:upgrade|osd rm)(?: status)?$|oc adm upgrade$|velero (?:get )?restore(?: (?:get|describe|logs))?$)/
  test('contain no sub-command that acts', () => {
    for (const { path } of all()) {
      const held = path
        .split(' ')
        .slice(1)
        .filter((word) => acting.test(word) && !things.test(path))
      expect([path, held]).toEqual([path, []])
    }
  })

  test('name what is missing, and what ends an endless command, by existing options', () => {
    for (const { path, grammar, options } of all()) {
      const letters = [...(grammar.bsd ?? '')].map((letter) => `-${letter}`)
      const { endless } = grammar
      const named = [
        ...(grammar.requires ?? []),
        ...(grammar.operands?.unlessOption ?? []),
        ...(Array.isArray(endless?.when) ? endless.when : []),
        ...(endless?.unless ?? []),
        ...(endless?.instead?.drop ?? []),
      ]
      expect([path, named.filter((name) => !options.includes(name) && !letters.includes(name))]).toEqual([path, []])
    }
  })

  test('refuse by valid expressions', () => {
    for (const { grammar } of all())
      for (const source of grammar.refuses ?? []) expect(new RegExp(source, 'i')).toBeTruthy()
  })
})

describe('of the commands written from the manuals', () => {
  test('there are enough, each once and with its label', () => {
    expect(reads.length).toBeGreaterThanOrEqual(600)
    expect(writes.length).toBeGreaterThanOrEqual(400)
    const texts = [...reads, ...writes].map(({ command }) => command)
    expect(texts.filter((text, at) => texts.indexOf(text) !== at)).toEqual([])
    expect(new Set(reads.map(({ expected }) => expected))).toEqual(new Set(['safe-read']))
    for (const { label } of writes)
      expect(['write', 'sensitive-read', 'unbounded', 'exfil', 'blocked']).toContain(label)
  })

  test('none that does more than read runs without approval', () => {
    const run = writes.filter(({ command }) => judgeCommand(command, context).verdict === 'run')
    expect(run.map(({ command, label }) => `${label}: ${command}`)).toEqual([])
  })

  test('at least nine in ten typical commands of a night run without approval, and none is refused', () => {
    const here = { ...context, knownNames: new Set(['web', 'web-1', '101']) }
    const verdicts = nightly.map(({ command }) => judgeCommand(command, here).verdict)
    expect(nightly.length).toBeGreaterThanOrEqual(300)
    expect(verdicts).not.toContain('refuse')
    expect(verdicts.filter((verdict) => verdict === 'run').length / nightly.length).toBeGreaterThanOrEqual(0.9)
  })

  test('no read is refused, and at least nine in ten run without approval', () => {
    const verdicts = reads.map(({ command }) => ({ command, ...judgeCommand(command, context) }))
    expect(verdicts.filter(({ verdict }) => verdict === 'refuse').map(({ command }) => command)).toEqual([])
    const share = verdicts.filter(({ verdict }) => verdict === 'run').length / reads.length
    expect(share).toBeGreaterThanOrEqual(0.9)
  })
})
