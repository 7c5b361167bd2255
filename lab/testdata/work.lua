-- A mixed load for lua: objects, closures, strings, sorting, recursion.
local seed = 12345
local function random(n)
  seed = (seed * 1103515245 + 12345) & 0x7fffffff
  return (seed >> 8) % n + 1
end

local Point = {}
Point.__index = Point
function Point.new(x, y) return setmetatable({x = x, y = y}, Point) end
Point.__add = function(a, b) return Point.new(a.x + b.x, a.y + b.y) end
Point.__lt = function(a, b) return a:norm() < b:norm() end
function Point:norm() return math.abs(self.x) + math.abs(self.y) end

local function points(n)
  local list, sum = {}, Point.new(0, 0)
  for i = 1, n do
    list[i] = Point.new(random(1000) - 500, random(1000) - 500)
    sum = sum + list[i]
  end
  table.sort(list)
  return sum:norm() + list[1]:norm()
end

local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end

local function words(n)
  local out = {}
  for i = 1, n do
    local w = {}
    for k = 1, random(8) do w[k] = string.char(96 + random(26)) end
    out[i] = table.concat(w)
  end
  local text = table.concat(out, " ")
  local count = 0
  for w in text:gmatch("%a+") do if w:find("a", 1, true) then count = count + #w end end
  text = text:gsub("(%a)(%a*)", function(a, b) return a:upper() .. b end)
  return count + #text
end

local function queens(n)
  local cols, d1, d2, found = {}, {}, {}, 0
  local function place(row)
    if row > n then found = found + 1 return end
    for c = 1, n do
      if not cols[c] and not d1[row + c] and not d2[row - c + n] then
        cols[c], d1[row + c], d2[row - c + n] = true, true, true
        place(row + 1)
        cols[c], d1[row + c], d2[row - c + n] = nil, nil, nil
      end
    end
  end
  place(1)
  return found
end

local function pipeline(n)
  local gen = coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end)
  local acc = {}
  for i = 1, n do acc[#acc + 1] = string.format("%05d:%x", gen(), i * 7) end
  return #table.concat(acc, ",")
end

local total = 0
for round = 1, tonumber(arg[1] or 10) do
  total = total + points(1500) + fib(18) + words(1500) + queens(6) + pipeline(1500)
  total = total + #tostring(total) + select("#", table.unpack({1, 2, 3}))
end
print(total)
