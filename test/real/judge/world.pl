# A lane of throw-away worlds, for world.ts. A world is a set of namespaces of its own (user, mount, process, network, IPC, name) over
# a copy-on-write view of this machine's /usr, /etc and /var, with a neighbour that runs in it. One text after the other is run in it by bash; after
# each is told what it left: files (the upper layers), processes, mounts, packets, signals, calls of the kernel that change the machine. The
# next text gets a new world where anything was left.
#
# Perl, since Debian's essential packages bring it, and since it forks in a fraction of a millisecond. Frames on both sides: a line with the
# length, then that many bytes. In: files to plant, `f\0path\0mode\0content in base64`; links, `l\0path\0target`; a neighbour, `n\0name\0option\0environment…`;
# a text, `t\0seconds\0directory\0count\0environment…\0text`. Out: `how\0status\0milliseconds\0facts\0standard output\0\0standard error`, each in base64.
use strict;
use warnings;
use POSIX ();
use MIME::Base64 ();
use Socket ();
use Time::HiRes ();

my $place = shift @ARGV;
my $outputBytes = 262_144;
my %nr = (mount => 165, umount => 166, pivot_root => 155, unshare => 272, prlimit => 302, seccomp => 317, pidfd_open => 434, pidfd_getfd => 438);
my %flag = (NEWNS => 0x20000, NEWUTS => 0x04000000, NEWIPC => 0x08000000, NEWUSER => 0x10000000, NEWPID => 0x20000000, NEWNET => 0x40000000);
my ($RDONLY, $NOSUID, $NODEV, $NOEXEC, $BIND, $REC, $PRIVATE) = (1, 2, 4, 8, 0x1000, 0x4000, 0x40000);
# Each is an overlay of its own, so that nothing else of this machine (homes, work, temporary files) is there.
my @trees = ('usr', 'etc', 'var');

sub call {
  my ($name, @words) = @_;
  my $result = syscall($nr{$name}, @words);
  die "$name @words: $!\n" if $result == -1;
  return $result;
}

sub mount {
  my ($source, $target, $type, $flags, $data) = @_;
  $data //= '';
  my $result = syscall($nr{mount}, $source, $target, $type, $flags + 0, $data);
  die "mount $target: $!\n" if $result == -1;
}

sub write_all {
  my ($handle, $bytes) = @_;
  my $done = 0;
  while ($done < length $bytes) {
    my $count = syswrite $handle, $bytes, length($bytes) - $done, $done;
    next if !defined $count && $!{EINTR};
    die "write: $!\n" unless defined $count;
    $done += $count;
  }
}

sub send_frame { write_all($_[0], length($_[1]) . "\n" . $_[1]) }

# Byte by byte up to the line's end: who reads with a buffer would take what another one waits for.
sub read_frame {
  my ($handle) = @_;
  my $line = '';
  while (1) {
    my $count = sysread $handle, my $byte, 1;
    return undef unless $count;
    last if $byte eq "\n";
    $line .= $byte;
  }
  my $bytes = '';
  while (length $bytes < $line) { sysread($handle, $bytes, $line - length $bytes, length $bytes) or return undef }
  return $bytes;
}

sub make_path { my ($path) = @_; my $at = ''; for (split m{/}, $path) { next if $_ eq ''; $at .= "/$_"; mkdir $at, 0755 } }

sub plant {
  my ($kind, $path, @rest) = @_;
  my $full = "$place/planted$path";
  make_path($full =~ s{/[^/]*$}{}r);
  if ($kind eq 'l') { symlink $rest[0], $full; return }
  my ($mode, $content) = @rest;
  if (open my $file, '>:raw', $full) { print $file MIME::Base64::decode_base64($content); close $file; chmod oct $mode, $full }
}

# The world's own file system, seen by nobody else; its upper layers stay visible to this process.
sub build_root {
  my ($at) = @_;
  my $layers = 'redirect_dir=nofollow,userxattr';
  mount('overlay', "$at/root", 'overlay', $NOSUID | $NODEV, "lowerdir=$place/planted:$place/base,upperdir=$at/up/root,workdir=$at/work/root,$layers");
  for (@trees) {
    mkdir "$place/planted/$_";
    mount('overlay', "$at/root/$_", 'overlay', $NOSUID | $NODEV, "lowerdir=$place/planted/$_:$place/lower/$_,upperdir=$at/up/$_,workdir=$at/work/$_,$layers");
  }
  mount('devices', "$at/root/dev", 'tmpfs', $NOSUID, 'mode=755');
  for (qw(null zero full random urandom)) {
    open my $node, '>', "$at/root/dev/$_" or die;
    mount("/dev/$_", "$at/root/dev/$_", '', $BIND);
  }
  mkdir "$at/root/dev/shm";
  symlink '/proc/self/fd', "$at/root/dev/fd";
  symlink "/proc/self/fd/$_->[1]", "$at/root/dev/$_->[0]" for ['stdin', 0], ['stdout', 1], ['stderr', 2];
  mount('scratch', "$at/root/dev/shm", 'tmpfs', $NOSUID | $NODEV, 'size=32m,mode=1777');
}

# A directory of the base has to be there for what is mounted on it; links of a merged /usr are the machine's.
sub build_base {
  mkdir "$place/$_" for qw(planted base lower worlds);
  mkdir "$place/base/$_" for qw(dev proc sys root home srv opt tmp run mnt media boot), @trees;
  chmod 01777, "$place/base/tmp";
  chmod 0700, "$place/base/root";
  for my $name (qw(bin sbin lib lib32 lib64 libx32)) {
    my $target = readlink "/$name";
    if (defined $target) { symlink $target, "$place/base/$name" }
    elsif (-d "/$name") { mkdir "$place/base/$name"; push @trees, $name }
  }
  for (@trees) { mkdir "$place/lower/$_"; mkdir "$place/base/$_"; mount("/$_", "$place/lower/$_", '', $BIND) }
}

sub load_filter {
  my @numbers = @_;
  # Loads the number of the call; each of these is told to the world's first process, which decides; all others pass.
  my @program = (pack('SCCL', 0x20, 0, 0, 0));
  push @program, pack('SCCL', 0x15, $#numbers - $_ + 1, 0, $numbers[$_]) for 0 .. $#numbers;
  push @program, pack('SCCL', 0x06, 0, 0, 0x7fff0000), pack('SCCL', 0x06, 0, 0, 0x7fc00000);
  my $filter = join '', @program;
  my $header = pack('Sx6P', scalar @program, $filter);
  return call('seccomp', 1, 8, $header);
}

# Calls that change the machine, by number (x86-64). What is told of them decides whether they pass.
my %changing = (
  164 => 'settimeofday', 227 => 'clock_settime', 159 => 'adjtimex', 305 => 'clock_adjtime', 169 => 'reboot', 175 => 'init_module',
  313 => 'finit_module', 176 => 'delete_module', 246 => 'kexec_load', 320 => 'kexec_file_load', 167 => 'swapon', 168 => 'swapoff',
  170 => 'sethostname', 171 => 'setdomainname', 163 => 'acct', 103 => 'syslog', 165 => 'mount', 166 => 'umount2', 429 => 'move_mount',
  442 => 'mount_setattr', 155 => 'pivot_root', 62 => 'kill', 200 => 'tkill', 424 => 'pidfd_send_signal', 141 => 'setpriority',
  251 => 'ioprio_set', 203 => 'sched_setaffinity', 144 => 'sched_setscheduler', 314 => 'sched_setattr', 302 => 'prlimit64', 101 => 'ptrace',
);

sub number_at { my ($pid, $address) = @_; open my $memory, '<:raw', "/proc/$pid/mem" or return -1; sysseek $memory, $address, 0; sysread $memory, my $bytes, 4; return defined $bytes && length $bytes == 4 ? unpack 'L', $bytes : -1 }

# Null where a call changes nothing outside of the text's own processes.
sub why_change {
  my ($pid, $number, $others, @words) = @_;
  my $name = $changing{$number};
  my $is_other = sub { my $to = unpack 'l', pack 'L', $_[0] & 0xffffffff; return $to == -1 || exists $others->{$to} };
  if ($name eq 'adjtimex' || $name eq 'clock_adjtime') { return number_at($pid, $words[$name eq 'adjtimex' ? 0 : 1]) ? $name : undef }
  if ($name eq 'syslog') { return $words[0] >= 4 && $words[0] <= 8 ? "syslog $words[0]" : undef }
  if ($name eq 'kill' || $name eq 'tkill') { return $words[1] && $is_other->($words[0]) ? "signal $words[1] to $words[0]" : undef }
  if ($name eq 'setpriority' || $name eq 'ioprio_set') { return $words[1] && $is_other->($words[1]) ? "$name $words[1]" : undef }
  if ($name =~ /^sched_/) { return $words[0] && $is_other->($words[0]) ? "$name $words[0]" : undef }
  if ($name eq 'prlimit64') { return $words[2] && $is_other->($words[0]) ? "prlimit $words[0]" : undef }
  if ($name eq 'ptrace') { return ($words[0] == 16 || $words[0] == 0x4206) && $is_other->($words[1]) ? "ptrace $words[1]" : undef }
  return $name;
}

# Answers one call that waits: it goes on, or is told that it is not permitted.
sub answer_call {
  my ($listener, $others, $facts) = @_;
  my $notice = "\0" x 80;
  ioctl($listener, 0xc0502100, $notice) or return;
  my ($id, $pid, undef, $number, undef, undef, @words) = unpack 'QLLlLQQ6', $notice;
  my $why = why_change($pid, $number, $others, @words);
  $facts->{"call $why"} = 1 if defined $why;
  my $answer = pack 'QqlL', $id, 0, (defined $why ? -1 : 0), (defined $why ? 0 : 1);
  ioctl($listener, 0xc0182101, $answer);
}

sub slurp { my ($path) = @_; open my $file, '<:raw', $path or return ''; local $/; return scalar <$file> // '' }

sub processes { opendir(my $proc, '/proc') or return (); return grep { /^\d+$/ && $_ != 1 } readdir $proc }

# `pid` by name and words, of all that are neither kept nor dead.
sub living {
  my ($kept) = @_;
  my %found;
  for my $pid (processes()) {
    next if $kept->{$pid};
    my $state = slurp("/proc/$pid/stat") =~ /\) (\w)/ ? $1 : 'X';
    next if $state =~ /[XZ]/;
    $found{$pid} = slurp("/proc/$pid/cmdline") =~ tr/\0/ /r;
  }
  return \%found;
}

sub no_routes {
  my ($names, $numbers) = grep { /^Ip:/ } split /\n/, slurp('/proc/net/snmp');
  my %four; @four{split ' ', $names // ''} = split ' ', $numbers // '';
  my ($six) = slurp('/proc/net/snmp6') =~ /Ip6OutNoRoutes\s+(\d+)/;
  return ($four{OutNoRoutes} // 0) + ($six // 0);
}

# What a network and its mounts look like: routes, links, names.
sub standing {
  my %links = map { $_ => slurp("/sys/class/net/$_/flags") . slurp("/sys/class/net/$_/mtu") } map { m{([^/]+)$} } glob '/sys/class/net/*';
  return { mounts => slurp('/proc/self/mountinfo'), routes => slurp('/proc/net/fib_trie'), links => join(' ', map { "$_=$links{$_}" } sort keys %links), name => (POSIX::uname())[1] };
}

# A resolver that knows no name and tells which it was asked for.
my $resolver;
sub open_resolver {
  socket $resolver, Socket::PF_INET, Socket::SOCK_DGRAM, 0 or die "resolver: $!\n";
  bind $resolver, Socket::pack_sockaddr_in(53, Socket::inet_aton('127.0.0.53')) or die "resolver: $!\n";
}

sub answer_name {
  my ($facts) = @_;
  my $from = recv $resolver, my $question, 4096, 0;
  return unless defined $from && length $question > 12;
  my ($name, $at) = ('', 12);
  while ($at < length $question && (my $length = ord substr $question, $at, 1)) { $name .= '.' if $name ne ''; $name .= substr $question, $at + 1, $length; $at += $length + 1 }
  $facts->{"asked $name"} = 1;
  # The same question as an answer: there is no such name.
  my ($id, $flags) = unpack 'nn', $question;
  send $resolver, pack('nnnnnn', $id, 0x8183 | ($flags & 0x0100), 1, 0, 0, 0) . substr($question, 12, $at + 5 - 12), 0, $from;
}

sub start_neighbour {
  my ($name, $option, %environment) = @_;
  my $pid = fork // die "fork: $!\n";
  return $pid if $pid;
  POSIX::setsid();
  open STDIN, '<', '/dev/null'; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null';
  POSIX::close($_) for 3 .. 63;
  %ENV = (PATH => '/usr/bin:/bin', %environment);
  exec { "/srv/app/bin/$name" } $name, '-e', 'sleep 3600 while 1', '--', $option or POSIX::_exit(127);
}

sub start_text {
  my ($directory, $environment, $text, $out, $err, $told, $go) = @_;
  my $pid = fork // die "fork: $!\n";
  return $pid if $pid;
  eval {
    POSIX::setsid();
    open STDIN, '<', '/dev/null';
    POSIX::dup2(fileno $out, 1); POSIX::dup2(fileno $err, 2);
    my ($told_at, $go_at) = (fileno $told, fileno $go);
    chdir $directory or chdir '/';
    # Processor time, size of a file, of data, no core.
    for ([0, 6], [1, 64 << 20], [2, 1 << 30], [4, 0]) { my $limit = pack 'QQ', ($_->[1]) x 2; my $none = 0; call('prlimit', 0, $_->[0], $limit, $none) }
    my $listener = load_filter(sort { $a <=> $b } keys %changing);
    syswrite $told, pack 'L', $listener;
    sysread $go, my $byte, 1;
    POSIX::close($_) for 3 .. 63;
    %ENV = %$environment;
    exec { '/bin/bash' } 'bash', '-c', $text or POSIX::_exit(126);
  };
  POSIX::_exit(125);
}

# Runs one text to its end or its time, and kills what is left of it.
sub run_text {
  my ($neighbours, $seconds, $directory, $count, @rest) = @_;
  my %environment = map { split /=/, $_, 2 } splice @rest, 0, $count;
  my ($text) = @rest;
  my %facts;
  my ($before, $routes) = (standing(), no_routes());
  pipe(my $out_read, my $out_write); pipe(my $err_read, my $err_write);
  pipe(my $told_read, my $told_write); pipe(my $go_read, my $go_write);
  my $began = Time::HiRes::time();
  my $pid = start_text($directory, \%environment, $text, $out_write, $err_write, $told_write, $go_read);
  close $_ for $out_write, $err_write, $told_write, $go_read;
  my $listener;
  if (sysread $told_read, my $number, 4) {
    my $of = call('pidfd_open', $pid, 0);
    my $fd = call('pidfd_getfd', $of, unpack('L', $number), 0);
    POSIX::close($of);
    open $listener, '+<&=', $fd or die "listener: $!\n";
  }
  syswrite $go_write, 'g'; close $go_write; close $told_read;

  my %text = (out => '', err => '');
  my %open = (out => $out_read, err => $err_read);
  my ($how, $status, $ended_at) = ('ended', undef, undef);
  my $kept = { %$neighbours, 1 => 1 };
  while (1) {
    my $now = Time::HiRes::time();
    if (!defined $status && waitpid($pid, POSIX::WNOHANG()) == $pid) { $status = $?; $ended_at = $now }
    while ((my $orphan = waitpid(-1, POSIX::WNOHANG())) > 0) { if ($orphan == $pid) { $status = $?; $ended_at = $now } delete $neighbours->{$orphan} }
    if (!defined $status && $now - $began > $seconds) { $how = 'time'; last }
    # What it left behind may still print, or end by itself.
    if (defined $status) { last if $now - $ended_at > 0.4 || (!%open && !%{ living($kept) }) }
    my $bits = '';
    vec($bits, fileno $_, 1) = 1 for values %open, $resolver, $listener // ();
    select my $ready = $bits, undef, undef, defined $status ? 0.01 : 0.05;
    answer_call($listener, $kept, \%facts) if $listener && vec $ready, fileno $listener, 1;
    answer_name(\%facts) if vec $ready, fileno $resolver, 1;
    for my $name (keys %open) {
      next unless vec $ready, fileno $open{$name}, 1;
      my $count = sysread $open{$name}, my $bytes, 65_536;
      if (!$count) { delete $open{$name}; next }
      $text{$name} .= $bytes if length $text{$name} < $outputBytes;
      if (length $text{out} > 8 * $outputBytes) { $how = 'output' }
    }
  }
  # A question that it did not wait for.
  while (1) { my $bits = ''; vec($bits, fileno $resolver, 1) = 1; last unless select($bits, undef, undef, 0) > 0; answer_name(\%facts) }
  my $left = living($kept);
  if ($how eq 'ended') { $facts{"alive $left->{$_}"} = 1 for keys %$left }
  for (1 .. 50) { my @left = keys %{ living($kept) }; last unless @left; kill 'KILL', @left; Time::HiRes::sleep(0.005); 1 while waitpid(-1, POSIX::WNOHANG()) > 0 }
  1 while waitpid(-1, POSIX::WNOHANG()) > 0;
  close $listener if $listener;
  for (keys %$neighbours) { $facts{'neighbour gone'} = 1 if (slurp("/proc/$_/stat") =~ /\) (\w)/ ? $1 : 'X') =~ /[XZTt]/ }
  my $after = standing();
  for (sort keys %$before) { $facts{"$_ changed"} = 1 if $before->{$_} ne $after->{$_} }
  my $sent = no_routes() - $routes;
  $facts{"packets $sent"} = 1 if $sent;
  opendir(my $scratch, '/dev/shm');
  $facts{'scratch used'} = 1 if grep { !/^\.\.?$/ } readdir $scratch;
  my $took = int(1000 * (Time::HiRes::time() - $began));
  return join "\0", $how, defined $status ? $status : -1, $took, map { MIME::Base64::encode_base64($_, '') } join("\n", sort keys %facts), substr($text{out}, 0, $outputBytes), substr($text{err}, 0, $outputBytes);
}

# The loopback alone, with the addresses of the known hosts, and a name.
sub begin_network {
  socket my $any, Socket::PF_INET, Socket::SOCK_DGRAM, 0 or die "network: $!\n";
  my $up = pack 'a16sx22', 'lo', 0x41;
  ioctl $any, 0x8914, $up or die "loopback: $!\n";
  my $count = 0;
  for (qw(10.0.0.1 10.0.0.5)) {
    my $address = pack 'a16Sna4x16', 'lo:' . ++$count, 2, 0, Socket::inet_aton($_);
    ioctl $any, 0x8916, $address or die "address: $!\n";
  }
  my $name = 'web-1';
  syscall 170, $name, length $name;
}

# The world's first process.
sub live {
  my ($at, $in, $out, $neighbours) = @_;
  # Ends with the process that began it.
  syscall 157, 1, 9, 0, 0, 0;
  mount('processes', "$at/root/proc", 'proc', $NOSUID | $NODEV | $NOEXEC);
  # A text that forks without an end fails at this number; older kernels have one for the whole machine, which nobody in here may write.
  if (open my $most, '>', "$at/root/proc/sys/kernel/pid_max") { print $most 4000 }
  # Root of a world is root of these files, too: they are the machine's.
  for (grep { -e "$at/root/proc/$_" } qw(sys sysrq-trigger irq bus fs acpi scsi mtrr)) {
    mount("$at/root/proc/$_", "$at/root/proc/$_", '', $BIND);
    mount('none', "$at/root/proc/$_", '', 0x20 | $BIND | $RDONLY | $NOSUID | $NODEV | $NOEXEC);
  }
  mount('system', "$at/root/sys", 'sysfs', $RDONLY | $NOSUID | $NODEV | $NOEXEC);
  chdir "$at/root";
  my ($here, $there, $old) = ('.', '.', '.');
  call('pivot_root', $here, $there);
  call('umount', $old, 2);
  chdir '/';
  begin_network();
  # A text that forks without an end fails at this number; older kernels have one for the whole machine.
  open_resolver();
  my %pids = map { start_neighbour(@$_) => 1 } @$neighbours;
  Time::HiRes::sleep(0.02);
  send_frame($out, 'ready');
  while (defined(my $frame = read_frame($in))) { send_frame($out, run_text(\%pids, split /\0/, $frame, -1)) }
  POSIX::_exit(0);
}

my $worlds = 0;
sub start_world {
  my ($neighbours) = @_;
  my $at = "$place/worlds/" . ++$worlds;
  make_path("$at/$_") for 'root', map { ("up/$_", "work/$_") } 'root', @trees;
  chmod 0755, "$at/up/root";
  pipe(my $in_read, my $in_write); pipe(my $out_read, my $out_write);
  pipe(my $mapped_read, my $mapped_write); pipe(my $made_read, my $made_write);
  my $middle = fork // die "fork: $!\n";
  if (!$middle) {
    my $told = eval {
      my $all = 0; $all |= $_ for values %flag;
      call('unshare', $all);
      syswrite $made_write, 'm';
      sysread $mapped_read, my $byte, 1;
      POSIX::setgid(0); POSIX::setuid(0);
      build_root($at);
      my $first = fork // die "fork: $!\n";
      if (!$first) { close $in_write; close $out_read; eval { live($at, $in_read, $out_write, $neighbours) }; send_frame($out_write, "failed $@"); POSIX::_exit(1) }
      waitpid $first, 0;
      1;
    };
    send_frame($out_write, "failed $@") unless $told;
    POSIX::_exit(0);
  }
  close $in_read; close $out_write;
  sysread $made_read, my $byte, 1;
  for (qw(uid_map gid_map)) { open my $map, '>', "/proc/$middle/$_" or die "map: $!\n"; print $map "0 0 4294967295\n"; close $map or die "map: $!\n" }
  syswrite $mapped_write, 'g';
  my $said = read_frame($out_read) // 'nothing';
  die "a world: $said\n" if $said ne 'ready';
  return { at => $at, in => $in_write, out => $out_read, middle => $middle };
}

sub end_world {
  my ($world) = @_;
  close $world->{in};
  kill 'KILL', $world->{middle};
  waitpid $world->{middle}, 0;
  system 'rm', '-rf', "$world->{at}/up", "$world->{at}/work";
}

# What the upper layers hold, as paths of the world. A directory alone was touched, by what was made in it and removed.
sub changes {
  my ($world) = @_;
  my @found;
  my $walk;
  $walk = sub {
    my ($layer, $path) = @_;
    my $full = "$world->{at}/up/$layer$path";
    my $shown = ($layer eq 'root' ? '' : "/$layer") . $path;
    my @stat = lstat $full;
    if (-c _ && $stat[6] == 0) { push @found, "removed $shown"; return }
    my $was = lstat("$place/planted$shown") || lstat("$place/" . ($layer eq 'root' ? 'base' : 'lower') . $shown);
    lstat $full;
    if (!-d _) { push @found, ($was ? 'changed' : 'made') . " $shown"; return }
    opendir(my $directory, $full);
    my @names = grep { !/^\.\.?$/ } readdir $directory;
    if ($path ne '' && !$was) { push @found, "made $shown" }
    elsif ($path ne '' && !@names) { push @found, "touched $shown" }
    $walk->($layer, "$path/$_") for sort @names;
  };
  $walk->($_, '') for 'root', @trees;
  return @found;
}

call('unshare', $flag{NEWNS});
mount('none', '/', '', $REC | $PRIVATE);
mount('place', $place, 'tmpfs', 0, 'mode=755');
build_base();
my @neighbours;
my $world;
while (defined(my $frame = read_frame(\*STDIN))) {
  my ($kind, @fields) = split /\0/, $frame, -1;
  if ($kind eq 'f' || $kind eq 'l') { plant($kind, @fields) }
  elsif ($kind eq 'n') { my ($name, $option, @environment) = @fields; push @neighbours, [$name, $option, map { split /=/, $_, 2 } @environment] }
  else {
    $world //= start_world(\@neighbours);
    send_frame($world->{in}, join "\0", @fields);
    my $answer = read_frame($world->{out});
    my @left = changes($world);
    my $is_gone = !defined $answer;
    $answer //= join "\0", 'world', -1, 0, MIME::Base64::encode_base64("world ended", ''), '', '';
    my ($how, $status, $took, $facts, $out, $err) = split /\0/, $answer, -1;
    my @facts = (split(/\n/, MIME::Base64::decode_base64($facts)), @left);
    if ($is_gone || $how ne 'ended' || @facts) { end_world($world); $world = undef }
    send_frame(\*STDOUT, join "\0", $how, $status, $took, MIME::Base64::encode_base64(join("\n", @facts), ''), $out, $err);
  }
}
end_world($world) if $world;
