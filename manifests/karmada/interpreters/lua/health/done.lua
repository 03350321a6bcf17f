function InterpretHealth(object)
  return done(map(object.status))
end
