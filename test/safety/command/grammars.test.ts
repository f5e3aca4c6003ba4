import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { Grammar } from '../../../safety/command/grammar.ts'
import { grammars } from '../../../safety/command/grammars/index.ts'
import { type CommandContext, judgeCommand } from '../../../safety/command/judge.ts'
import { isHarmlessRequest } from '../../../safety/command/remote-exec-wrappers.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

describe('grammars', () => {
  type Row = { command: string; expected: string; source: string; label?: string; class?: string }

  const rows = (file: string): Row[] =>
    JSON.parse(readFileSync(new URL(`../../data/commands/${file}.json`, import.meta.url), 'utf8'))
  const reads = rows('reads')
  const writes = rows('writes')
  const nightly = rows('nightly')
  const context = { knownHosts: new Set(['db-osl-1', '10.0.0.5']) }

  /** Every grammar with the words that lead to it, sub-commands with the options of the levels above. */
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

  /** Options that the manuals say write, run a program or read one, and words that act: none may ever come in. */
  const forbidden: Record<string, string> = {
    apt: '-o -c --option --config-file',
    awk: '-f -i -l -o -p -d -E --file --include',
    blkid: '-w -g -c',
    curl: '-d -F -T -X -K -O -D -c -b -H -x -u -L --data --form --upload-file --request --config --remote-name --next --trace',
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

  describe('The grammars', () => {
    test('name the manual that they are from', () => {
      for (const { path, grammar } of all()) expect([path, grammar.manual.length > 2]).toEqual([path, true])
    })

    test('spell every option as it is typed', () => {
      for (const { path, grammar } of all()) {
        for (const option of Object.keys(grammar.options ?? {})) expect(`${path}: ${option}`).toMatch(/: [-+][^\s]+$/)
      }
    })

    test('hold no option that writes, runs a program, reads one or leads elsewhere', () => {
      for (const [name, words] of Object.entries(forbidden)) {
        const known = all().filter(({ path }) => path === name || path.startsWith(`${name} `))
        expect([name, known.length > 0]).toEqual([name, true])
        for (const { path, options } of known) {
          const held = words.split(' ').filter((word) => options.includes(word))
          expect([path, held]).toEqual([path, []])
        }
      }
    })

    test('hold no sub-command that acts', () => {
      for (const { path } of all()) {
        const held = path
          .split(' ')
          .slice(1)
          // A run of a pipeline is a thing that is listed and viewed.
          .filter((word) => acting.test(word) && !path.startsWith('gh run'))
        expect([path, held]).toEqual([path, []])
      }
    })

    test('say what is missing by options that are there, and what ends the endless', () => {
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

    test('refuse by expressions that can be read', () => {
      for (const { grammar } of all())
        for (const source of grammar.refuses ?? []) expect(new RegExp(source, 'i')).toBeTruthy()
    })
  })

  describe('Of the commands written from the manuals', () => {
    test('there are enough, each once and with its label', () => {
      expect(reads.length).toBeGreaterThanOrEqual(600)
      expect(writes.length).toBeGreaterThanOrEqual(400)
      const texts = [...reads, ...writes].map(({ command }) => command)
      expect(texts.filter((text, at) => texts.indexOf(text) !== at)).toEqual([])
      expect(new Set(reads.map(({ expected }) => expected))).toEqual(new Set(['safe-read']))
      for (const { label } of writes)
        expect(['write', 'sensitive-read', 'unbounded', 'exfil', 'blocked']).toContain(label)
    })

    test('none that does more than look runs unasked', () => {
      const run = writes.filter(({ command }) => judgeCommand(command, context).verdict === 'run')
      expect(run.map(({ command, label }) => `${label}: ${command}`)).toEqual([])
    })

    test('at least nine in ten of what is typed at night run unasked, and none is refused', () => {
      const here = { ...context, knownNames: new Set(['web', 'web-1', '101']) }
      const verdicts = nightly.map(({ command }) => judgeCommand(command, here).verdict)
      expect(nightly.length).toBeGreaterThanOrEqual(300)
      expect(verdicts).not.toContain('refuse')
      expect(verdicts.filter((verdict) => verdict === 'run').length / nightly.length).toBeGreaterThanOrEqual(0.9)
    })

    test('no read is refused, and at least nine in ten run unasked', () => {
      const verdicts = reads.map(({ command }) => ({ command, ...judgeCommand(command, context) }))
      expect(verdicts.filter(({ verdict }) => verdict === 'refuse').map(({ command }) => command)).toEqual([])
      const share = verdicts.filter(({ verdict }) => verdict === 'run').length / reads.length
      expect(share).toBeGreaterThanOrEqual(0.9)
    })
  })
})

describe('night', () => {
  const context: CommandContext = { knownHosts: new Set(['db1']), knownNames: new Set(['web', '101']) }
  const judged = (text: string, more: Partial<CommandContext> = {}) => judgeCommand(text, { ...context, ...more })

  beforeAll(loadSql)

  describe('What is asked of a web server', () => {
    test.each([
      '',
      '/',
      '/health',
      '/healthz?verbose',
      '/_cat/indices?v&s=index',
      '/v1/health/service/web?passing',
      '/stats;csv',
    ])('%j only looks', (target) => expect(isHarmlessRequest(target)).toBe(true))
    test.each([
      '/admin',
      '/health?shutdown=true',
      '/health/../admin',
      '/health/%2e%2e/admin',
      '//admin',
      '/health;/admin',
      '/_cat/../_shutdown',
      '/_all/_close',
      '/v1/health/service/../../kv/x',
      '/actuator/env',
      `/api/v1/query?query=${'x'.repeat(600)}`,
    ])('%j is not known to only look', (target) => expect(isHarmlessRequest(target)).toBe(false))

    test('the address that hands out credentials is asked about even where it is known', () => {
      const knownHosts = new Set(['169.254.169.254', 'metadata.google.internal'])
      expect(judged('curl -s http://169.254.169.254/', { knownHosts }).verdict).toBe('ask')
      expect(judged('curl -s http://metadata.google.internal/', { knownHosts }).verdict).toBe('ask')
    })
  })

  describe('A command that is given what another one found', () => {
    test.each([
      ['a loop over words', 'for h in db1 localhost; do ssh $h uptime; done'],
      ['a loop over numbers', 'for i in {1..3}; do cat /proc/loadavg; sleep 1; done'],
      ['a loop over known output', 'for i in $(seq 1 3); do uptime; done'],
      ['logs that find names', "find /var/log -name '*.log' -exec grep -l error {} +"],
      ['files of one kind', "find /srv/app -name '*.log' -exec tail -n 5 {} \\;"],
      ['sizes of anything', 'find /srv -type f -exec ls -lh {} \\;'],
      ['paths without blanks between', "find /var/log -name '*.log' -print0 | xargs -0 grep -c error"],
      ['process numbers', 'pgrep nginx | xargs ps -o pid,rss -p'],
      ['a process number in a path', 'cat /proc/$(pgrep -o nginx)/status'],
      ['a date in a pattern', 'grep "$(date +%F)" /var/log/syslog'],
      ['a group', '(date; uptime) | head -2'],
      ['a condition', 'if systemctl is-active -q nginx; then echo up; else echo down; fi'],
      ['a question that is known', 'echo ruok | nc localhost 2181'],
      ['an empty input', 'openssl s_client -connect db1:443 </dev/null | openssl x509 -noout -dates'],
    ])('runs unasked: %s', (_, text) => expect(judged(text)).toMatchObject({ verdict: 'run' }))

    test.each([
      ['one round of a loop', 'for h in db1 elsewhere; do ssh $h uptime; done', 'EXFILTRATION'],
      ['a variable that programs obey', 'for PATH in /tmp; do ls; done', 'SHAPE'],
      ['what lies below a home', 'find /home -type f -exec cat {} +', 'SENSITIVE_PATH'],
      ['a hidden file of that name', "find /srv -name '.env' -exec cat {} +", 'SENSITIVE_PATH'],
      ['a name with a blank in it', "find /var/log -name '*.log' | xargs cat", 'WRAPPER'],
      ['an operand inside a word', "find /var/log -exec sh -c 'cat {}' \\;", 'WRAPPER'],
      ['a process number that is killed', 'pgrep nginx | xargs kill', 'UNKNOWN_COMMAND'],
      ['a plus sign that ends nothing', 'find /tmp -exec + x \\;', 'UNKNOWN_COMMAND'],
      ['what find does besides', 'find /var/log -delete -exec ls {} \\;', 'ARGUMENT'],
      ['what is sent', 'cat /etc/hosts | nc db1 80', 'ARGUMENT'],
      ['what is sent through a group', 'cat /etc/hosts | (openssl s_client -connect db1:443)', 'ARGUMENT'],
    ])('asks because of %s', (_, text, code) => expect(judged(text)).toMatchObject({ verdict: 'ask', code }))
  })

  test('sudo runs unasked what the manifest allows word for word, and nothing beside it', () => {
    const rootReads = [
      ['ss', '-tlnp'],
      ['rm', 'x'],
    ]
    expect(judged('sudo -n ss -tlnp', { rootReads })).toMatchObject({ verdict: 'run', needsRoot: true })
    for (const text of [
      'sudo ss -tlnp',
      'sudo -n ss -tln',
      'sudo -n -u bob ss -tlnp',
      'sudo -n A=b ss -tlnp',
      'sudo -n rm x',
    ])
      expect(judged(text, { rootReads }).verdict).toBe('ask')
    expect(judged('sudo -n ss -tlnp').verdict).toBe('ask')
  })

  test('a session of PostgreSQL gets a time limit that every role may set', () => {
    const { environment } = judged("psql -c 'select 1'")
    expect(environment.PGOPTIONS).toContain('statement_timeout=')
    // Only a superuser may set it: the session of another role would not begin.
    expect(environment.PGOPTIONS).not.toContain('temp_file_limit')
  })

  test('rows that a statement makes of nothing have a bound that stands there', () => {
    for (const sql of [
      'select * from generate_series(1, 100)',
      'select * from a join b on a.x = b.x',
      'select * from a, b where a.x = b.x',
      'with recursive t(n) as (select 1 union all select n + 1 from t where n < 10) select * from t',
    ])
      expect([sql, judged(`psql -c '${sql}'`).verdict]).toEqual([sql, 'run'])
    for (const sql of [
      'select * from generate_series(1, 100000000000)',
      'select * from generate_series(1, 1e11::bigint)',
      'select * from generate_series(1, 10000) a, generate_series(1, 10000) b',
      'select * from generate_series(1, (select count(*) from a))',
      'select * from a, b',
      'select * from a cross join b',
      'select * from a join b on true, c, d',
      'with recursive t(n) as (select 1 union all select n + 1 from t) select * from t',
      'with recursive t(n) as (select 1 union all select n + 1 from t where n < 100000000000) select * from t',
    ])
      expect([sql, judged(`psql -c '${sql}'`).verdict]).toEqual([sql, 'ask'])
  })
})
