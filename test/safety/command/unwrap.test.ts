import { expect, test } from '@jest/globals'
import { parse } from '../../../safety/command/parse.ts'
import { unwrap } from '../../../safety/command/unwrap.ts'

const inner = (text: string): string[] => {
  const [simple] = parse(text)!.pipelines[0]!
  const name = simple!.words[0]!.text
  const found = unwrap(name, simple!.words, simple!.input, false)
  return (found?.inner ?? []).map((one) =>
    one.kind === 'script' ? `$ ${one.text}` : one.words.map((word) => word.text).join(' '),
  )
}

test.each([
  ['sudo -u bob -- x y', 'x y'],
  ['sudo -nu bob A=b x', 'x'],
  ['doas x', 'x'],
  ['su - bob -c "x y"', '$ x y'],
  ['runuser -u bob -- x', 'x'],
  ['env -i A=b C=d x y', 'x y'],
  ['env -S "x y"', '$ x y'],
  ['timeout -k 5 10s x', 'x'],
  ['nice -n 5 x', 'x'],
  ['nice -5 x', 'x'],
  ['ionice -c3 x', 'x'],
  ['chrt -f 50 x', 'x'],
  ['taskset -c 0-3 x', 'x'],
  ['stdbuf -oL x', 'x'],
  ['nohup x', 'x'],
  ['setsid -f x', 'x'],
  ['command -p x', 'x'],
  ['exec -a name x', 'x'],
  ['eval x y', '$ x y'],
  ['chroot --userspec=a:b /mnt x', 'x'],
  ['unshare -rm x', 'x'],
  ['nsenter -t 1 -m -u x', 'x'],
  ['watch -n 1 x y', '$ x y'],
  ['busybox x', 'x'],
  ['systemd-run --unit=a --wait x', 'x'],
  ['bash -euxc "x; y"', '$ x; y'],
  ['sh -o pipefail -c x', '$ x'],
  ['xargs -0 -n 1 x', 'x'],
  ['xargs -I{} x {}', 'x {}'],
  ['find / -name a -exec x {} \\; -exec y {} +', 'x {},y {},find / -name a'],
  ['ssh -p 22 bob@db1 x y', '$ x y'],
  ['ssh db1 -p 22 x', '$ x'],
  ['docker -D exec -it -u bob web x', 'x'],
  ['docker container exec web x', 'x'],
  ['docker compose -f a.yml exec -T web x', 'x'],
  ['docker run --rm -v /:/h alpine x', 'x'],
  ['podman exec web x', 'x'],
  ['kubectl -n a exec pod -c b -- x', 'x'],
  ['crictl exec -i abc x', 'x'],
  ['lxc exec box -- x', 'x'],
  ['pct exec 101 -- x', 'x'],
  ['ip netns exec blue x', 'x'],
  ['flock -n /tmp/l x', 'x'],
  ['flock /tmp/l -c x', '$ x'],
  ['script -qc x /dev/null', '$ x'],
  ['strace -f -o /tmp/t x', 'x'],
  ['setpriv --reuid=1 x', 'x'],
  ['gdb -batch -ex x', '$ x'],
  ['parallel x {} ::: a', 'x {},$ a'],
  ['trap x EXIT', '$ x'],
  ['sh <<< x', '$ x'],
])('the command inside is found: %s', (text, expected) => expect(inner(text).join(',')).toBe(expected))

test.each(['ls x', 'docker ps', 'ip addr', 'kubectl get pods', 'find / -name x', 'command -v x'])(
  'a program that runs nothing is no wrapper: %s',
  (text) => expect(inner(text)).toEqual([]),
)
