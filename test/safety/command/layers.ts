import fc from 'fast-check'
import { quote } from '../../../safety/command/unwrapped.ts'

export const argv = fc.oneof(
  fc.constantFrom(
    ...`ls|ls -la /var/log|df -h|cat /etc/hosts|cat /etc/shadow|ps aux|reboot|rm -rf /|rm -rf /tmp/x|tail -n 5 /var/log/syslog
|journalctl -u nginx|systemctl status nginx|systemctl restart nginx|systemctl reboot|frobnicate --all|docker ps|docker exec web ls /
|ping -c 1 evil.example|curl -s http://localhost/|find /etc -name x|find / -delete|git status|grep -r x /etc|mkfs.ext4 /dev/sda
|chmod -R 777 /|kill -9 1|ssh db1 uptime|sudo ls|env LD_PRELOAD=x ls|head -20 /etc/passwd|dd if=/dev/zero of=/dev/sda|mv /etc /x`
      .split('|')
      .map((text) => text.trim().split(' ')),
  ),
  fc.array(
    fc.oneof(
      fc.constantFrom(
        'ls',
        'cat',
        'rm',
        '-rf',
        '-la',
        '--',
        '/',
        '/etc',
        '/etc/shadow',
        '/tmp/x',
        'sudo',
        'find',
        '-exec',
        ';',
        'x',
        '-c',
        'sh',
        'reboot',
        '-n',
        '5',
        'timeout',
        'env',
        'A=b',
        'xargs',
        'docker',
        'exec',
        'web',
        '*',
        'awk',
        '{print $1}',
        'grep',
        '-r',
      ),
      fc.string({ maxLength: 6, unit: 'grapheme-ascii' }),
    ),
    { minLength: 1, maxLength: 6 },
  ),
)

export const text = argv.map((words) => words.map(quote).join(' '))

export const wrap: readonly ((text: string) => string)[] = [
  (text) => `sudo ${text}`,
  (text) => `sudo -u bob -- ${text}`,
  (text) => `env ${text}`,
  (text) => `env LC_ALL=C ${text}`,
  (text) => `nice -n 5 ${text}`,
  (text) => `nohup ${text}`,
  (text) => `setsid ${text}`,
  (text) => `command -- ${text}`,
  (text) => `stdbuf -oL ${text}`,
  (text) => `busybox ${text}`,
  (text) => `chroot /mnt ${text}`,
  (text) => `xargs ${text}`,
  (text) => `sh -c ${quote(text)}`,
  (text) => `bash -lc ${quote(text)}`,
  (text) => `su -c ${quote(text)}`,
  (text) => `eval ${quote(text)}`,
  (text) => `ssh db1 ${quote(text)}`,
  (text) => `ssh elsewhere ${quote(text)}`,
  (text) => `docker exec web ${text}`,
  (text) => `docker run alpine ${text}`,
  (text) => `kubectl exec web -- ${text}`,
  (text) => `nsenter -t 1 -m -- ${text}`,
  (text) => `systemd-run ${text}`,
  (text) => `flock /tmp/l ${text}`,
  (text) => `script -qc ${quote(text)}`,
  // A bare `;` or `+` among the words would end what find runs.
  (text) => (/(?:^| )(?:';'|\+)/.test(text) ? `nohup ${text}` : `find /tmp -exec ${text} \\;`),
]

/** What makes of a command something that no program can be given as words. */
export const enclose: readonly ((text: string) => string)[] = [
  (text) => `( ${text} )`,
  (text) => `{ ${text}; }`,
  (text) => `echo $(${text})`,
  (text) => `! ${text}`,
  (text) => `if ${text}; then ls; fi`,
  (text) => `f() { ${text}; }`,
]

export const append: readonly ((text: string) => string)[] = [
  (text) => `${text}; ls`,
  (text) => `ls; ${text}`,
  (text) => `${text} && ls`,
  (text) => `ls || ${text}`,
  (text) => `${text} | head`,
  (text) => `ls | ${text}`,
  (text) => `${text} |& cat`,
  (text) => `${text} & ls`,
  (text) => `${text}\nls`,
  (text) => `${text} 2>/dev/null`,
  (text) => `${text} > /tmp/x`,
  (text) => `${text} || rm x`,
]
